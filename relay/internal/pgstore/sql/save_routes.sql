-- $1 relay, $2 topics, $3 whether paused, $4 errors. Topics that are not listed any more are forgotten, and nothing is
-- written about a relay that is no more; changed_at is when the route was last paused or opened, not when its error had
-- other words.
-- Its row is locked before any of a topic, as whoever ends it does.
WITH own AS MATERIALIZED (
    SELECT r.id FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.ended_at IS NULL FOR KEY SHARE
), forgotten AS (
    DELETE FROM {schema}.outbox_topics t USING own WHERE t.relay = own.id AND t.topic <> ALL($2::text[])
)
INSERT INTO {schema}.outbox_topics AS s (relay, topic, paused, error)
SELECT own.id, t.topic, t.paused, t.error
  FROM own CROSS JOIN unnest($2::text[], $3::boolean[], $4::text[]) t(topic, paused, error) ORDER BY t.topic
ON CONFLICT (relay, topic) DO UPDATE
   SET paused = excluded.paused, error = excluded.error,
       changed_at = CASE WHEN s.paused = excluded.paused THEN s.changed_at ELSE clock_timestamp() END
 WHERE (s.paused, s.error) IS DISTINCT FROM (excluded.paused, excluded.error)
