-- Which relays that have not ended know the event types $1, and their topics.
SELECT k.relay::text, k.event_type, k.topic
  FROM {schema}.outbox_known k JOIN {schema}.outbox_relays r ON r.id = k.relay AND r.ended_at IS NULL
 WHERE k.event_type = ANY ($1::text[])
 ORDER BY r.started_at DESC, k.event_type LIMIT (SELECT 10000)
