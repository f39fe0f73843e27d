-- The numbers of the dead letters of the event $1, the newest first, at most $2.
SELECT d.id FROM {schema}.outbox_dlq d WHERE d.event_id = $1::text::uuid
 ORDER BY d.failed_at DESC, d.id DESC LIMIT (SELECT $2::integer)
