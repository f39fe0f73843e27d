-- $1 relay, $2 topics, $3 whether paused, $4 errors, $5 whether an operator paused them. Topics that are not listed any
-- more are forgotten, and nothing is written about a relay that is no more; changed_at is when the route was last
-- paused or opened, not when its error had other words.
-- Its row is locked before any of a topic, as whoever ends it does.
WITH own AS MATERIALIZED (
    SELECT r.id FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.ended_at IS NULL FOR KEY SHARE
), forgotten AS (
    DELETE FROM {schema}.outbox_topics t USING own WHERE t.relay = own.id AND t.topic <> ALL($2::text[])
)
INSERT INTO {schema}.outbox_topics AS s (relay, topic, paused, by_operator, error)
SELECT own.id, t.topic, t.paused, t.by_operator, t.error
  FROM own CROSS JOIN unnest($2::text[], $3::boolean[], $4::text[], $5::boolean[])
       t(topic, paused, error, by_operator)
 ORDER BY t.topic
ON CONFLICT (relay, topic) DO UPDATE
   SET paused = excluded.paused, by_operator = excluded.by_operator, error = excluded.error,
       changed_at = CASE WHEN s.paused = excluded.paused THEN s.changed_at ELSE clock_timestamp() END
 WHERE (s.paused, s.by_operator, s.error)
       IS DISTINCT FROM (excluded.paused, excluded.by_operator, excluded.error)
