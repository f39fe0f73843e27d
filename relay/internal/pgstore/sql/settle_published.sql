-- $1 and $2 lanes and tokens, $3 published. What settle.sql does, for the batches in which nothing went wrong.
-- States: 0 ready, 1 retrying, 3 waiting, 6 published.
WITH own AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l
      JOIN unnest($1::smallint[], $2::uuid[]) t(lane, token) ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR KEY SHARE OF l
), held AS MATERIALIZED (
    SELECT count(*) = cardinality($1::smallint[]) AS ok FROM own
), published AS (
    UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()
     WHERE id = ANY($3::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held)
)
SELECT (SELECT ok FROM held), ARRAY(SELECT lane FROM own), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
