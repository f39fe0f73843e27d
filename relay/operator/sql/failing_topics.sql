-- Which relays that have not ended have paused the topics $1, since when and why.
SELECT t.relay::text, r.name, t.topic, t.changed_at, t.error
  FROM {schema}.outbox_topics t JOIN {schema}.outbox_relays r ON r.id = t.relay AND r.ended_at IS NULL
 WHERE t.paused AND t.topic = ANY ($1::text[])
 ORDER BY t.changed_at, r.name LIMIT (SELECT 1000)
