-- Where event types go, as the relays know it that have not ended, and since when one of these has been there. While a
-- type moves they differ, and each sends to its own topic: all count. That of the relay which started last comes first.
SELECT k.event_type, k.topic, min(r.started_at)
  FROM {schema}.outbox_known k JOIN {schema}.outbox_relays r ON r.id = k.relay AND r.ended_at IS NULL
 GROUP BY k.event_type, k.topic ORDER BY k.event_type, max(r.started_at) DESC, k.topic LIMIT (SELECT 10000)
