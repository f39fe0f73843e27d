-- $1 relay, $2 topics, $3 whether paused, $4 errors. Topics that are not listed any more are forgotten;
-- changed_at is when the route was last paused or opened, not when its error had other words.
WITH forgotten AS (
    DELETE FROM {schema}.outbox_topics WHERE relay = $1::uuid AND topic <> ALL($2::text[])
)
INSERT INTO {schema}.outbox_topics AS r (relay, topic, paused, error)
SELECT $1::uuid, t.topic, t.paused, t.error FROM unnest($2::text[], $3::boolean[], $4::text[]) t(topic, paused, error)
       ORDER BY t.topic
ON CONFLICT (relay, topic) DO UPDATE
   SET paused = excluded.paused, error = excluded.error,
       changed_at = CASE WHEN r.paused = excluded.paused THEN r.changed_at ELSE clock_timestamp() END
 WHERE (r.paused, r.error) IS DISTINCT FROM (excluded.paused, excluded.error)
