-- The topics of the dead events $1, as their last dead letters have them.
SELECT DISTINCT ON (d.event_id) d.event_id::text, coalesce(d.topic, '') FROM {schema}.outbox_dlq d
 WHERE d.event_id = ANY ($1::text[]::uuid[]) ORDER BY d.event_id, d.id DESC
