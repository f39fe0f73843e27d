-- $1 topics (null: all), $2 the most. Which relays that have not ended have paused them because publishing fails, since
-- when and why. What an operator has paused is told by whoever asks for pauses.
SELECT t.relay::text, r.name, t.topic, t.changed_at, t.error
  FROM {schema}.outbox_topics t JOIN {schema}.outbox_relays r ON r.id = t.relay AND r.ended_at IS NULL
 WHERE t.paused AND NOT t.by_operator AND ($1::text[] IS NULL OR t.topic = ANY ($1::text[]))
 ORDER BY t.topic, t.changed_at, r.name, r.id LIMIT (SELECT $2::bigint)
