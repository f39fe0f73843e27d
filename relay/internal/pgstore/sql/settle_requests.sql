-- $1 relay, $2 its token, $3 lanes of the batch; $4-$9 number, lane, end, attempts, error and version of each request.
-- What is not open any more stays as it is, and what is to be given back and has another version: it was given back
-- before, and taken again. One that is given back untried keeps its last error. Rows are locked by lane,
-- number of the event and id, as everywhere.
-- Ends: 0 open, 1 delivered, 2 failed.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), mine AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[]) AS ok
), locked AS MATERIALIZED (
    SELECT r.id, a.state, a.attempts, a.error
      FROM {schema}.outbox_requests r
      JOIN unnest($4::bigint[], $5::smallint[], $6::smallint[], $7::integer[], $8::text[],
                  $9::bigint[])
           a(id, lane, state, attempts, error, version) ON a.id = r.id AND a.lane = r.lane
     WHERE (SELECT ok FROM mine) AND (a.state <> 0 OR r.xmin::text::bigint = a.version)
       AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
     ORDER BY r.lane, r.event_seq, r.id FOR UPDATE OF r
), settled AS (
    UPDATE {schema}.outbox_requests r
       SET delivered_at = CASE WHEN l.state = 1 THEN clock_timestamp() END,
           failed_at = CASE WHEN l.state = 2 THEN clock_timestamp() END,
           taken = 0, taken_by = NULL, attempts = l.attempts,
           last_error = coalesce(nullif(l.error, ''), CASE WHEN l.state = 0 THEN r.last_error END)
      FROM locked l WHERE r.id = l.id
)
SELECT (SELECT ok FROM mine),
       ARRAY(SELECT l.lane FROM own CROSS JOIN unnest(own.lanes) l(lane) WHERE l.lane = ANY($3::smallint[]))
