-- The topic of each event type, as the relays that are there know it. Of relays that differ, the one that started last
-- counts.
SELECT DISTINCT ON (k.event_type) k.event_type, k.topic
  FROM {schema}.outbox_known k JOIN {schema}.outbox_relays r ON r.id = k.relay AND r.ended_at IS NULL
 ORDER BY k.event_type, r.started_at DESC LIMIT (SELECT 10000)
