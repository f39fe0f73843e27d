-- $1 relay, $2 event types, $3 their topics
INSERT INTO {schema}.outbox_known (relay, event_type, topic)
SELECT $1::uuid, k.event_type, k.topic FROM unnest($2::text[], $3::text[]) k(event_type, topic)
ON CONFLICT (relay, event_type) DO NOTHING
