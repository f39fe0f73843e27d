-- The topics that events were published to from $1 on, as relays that survey wrote it down: 72 hours back at most.
SELECT DISTINCT m.topic FROM {schema}.outbox_minutes m
 WHERE m.minute >= $1::timestamptz AND m.published > 0 ORDER BY m.topic LIMIT (SELECT 10000)
