-- $1 relay, $2 its token, $3 lanes of the batch; $4 and $5 lane and number of what is published, $6 and $7 the lowest
-- and the highest number. What settle.sql does, for the batches in which nothing went wrong, and says how many were
-- ready: the others are held, or were settled before. No column that is in an index changes, so no index is touched.
--
-- How many there are is hidden from the planner, twice: it takes the list for one row then, and looks each event up by
-- its key. It would else believe its statistics, in which new numbers are missing, and take the range of them for
-- empty: then it walks the whole index, and compares each event in the range with the whole list.
-- States: 0 ready, 6 published.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), mine AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[]) AS ok
), published AS (
    UPDATE {schema}.outbox_events e SET state = 6, published_at = clock_timestamp()
      FROM (SELECT * FROM unnest((SELECT $4::smallint[]), (SELECT $5::bigint[])) a(lane, seq)
             LIMIT (SELECT 9223372036854775807)) a
     WHERE e.lane = a.lane AND e.seq = a.seq AND e.seq BETWEEN $6::bigint AND $7::bigint AND e.state = 0
       AND (SELECT ok FROM mine)
    RETURNING 1
)
SELECT (SELECT ok FROM mine),
       ARRAY(SELECT l.lane FROM own CROSS JOIN unnest(own.lanes) l(lane) WHERE l.lane = ANY($3::smallint[])),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT count(*) FROM published)
