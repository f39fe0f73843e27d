-- $1 relay, $2 its token, $3 lanes of the batch, $4 published. What settle.sql does, for the batches in which nothing
-- went wrong. States: 0 ready, 1 retrying, 3 waiting, 6 published.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), held AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[]) AS ok
), published AS (
    UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()
     WHERE id = ANY($4::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held)
)
SELECT (SELECT ok FROM held),
       ARRAY(SELECT l.lane FROM own CROSS JOIN unnest(own.lanes) l(lane) WHERE l.lane = ANY($3::smallint[])),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
