-- Relays that ended long ago, with their beats and what they knew. A few at a time: more come with the next start.
DELETE FROM {schema}.outbox_relays r WHERE r.id IN (
    SELECT o.id FROM {schema}.outbox_relays o WHERE o.ended_at < clock_timestamp() - interval '1 day'
     ORDER BY o.ended_at LIMIT 100 FOR UPDATE SKIP LOCKED)
