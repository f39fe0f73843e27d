-- The topic of each event type, $1 (null: of all), as the relays that are there know it. Of relays that differ, the one
-- that started last counts.
SELECT DISTINCT ON (k.event_type) k.event_type, k.topic
  FROM {schema}.outbox_known k JOIN {schema}.outbox_relays r ON r.id = k.relay AND r.ended_at IS NULL
 WHERE $1::text[] IS NULL OR k.event_type = ANY ($1::text[])
 ORDER BY k.event_type, r.started_at DESC LIMIT (SELECT 10000)
