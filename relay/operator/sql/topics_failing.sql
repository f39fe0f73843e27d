-- $1 the most. The topics that relays which have not ended have paused, because publishing to them fails.
-- An operator's pause stands there as well, in these words, and is told as such by whoever asks for pauses.
SELECT t.topic, r.id::text, r.name, t.error, t.changed_at
  FROM {schema}.outbox_topics t JOIN {schema}.outbox_relays r ON r.id = t.relay
 WHERE t.paused AND r.ended_at IS NULL AND t.error NOT LIKE 'paused by %'
 ORDER BY t.topic, t.changed_at, r.id LIMIT (SELECT $1::bigint)
