-- $1 the limit. Ready events: how many, at most the limit, and the age of the oldest in seconds. Below a lane's floor
-- there are none, only what vacuum has not cleared away yet; that is passed over once for each lane, to find its first.
-- The limits are hidden from the planner, which else may take another index for a few rows of many. States: 0 ready.
WITH heads AS MATERIALIZED (
    SELECT l.lane, e.seq, e.created_at
      FROM {schema}.outbox_lane_status l CROSS JOIN LATERAL (
        SELECT e.seq, e.created_at FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.seq > l.floor
           AND e.state = 0
         ORDER BY e.seq LIMIT (SELECT 1)) e
     WHERE l.layout = 1
)
SELECT (SELECT count(*) FROM (
            SELECT FROM heads h CROSS JOIN LATERAL (
                SELECT FROM {schema}.outbox_events e
                 WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = h.lane AND e.seq >= h.seq
                   AND e.state = 0
                 ORDER BY e.seq LIMIT (SELECT $1::bigint)) e
             LIMIT (SELECT $1::bigint)) c),
       (SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 FROM heads WHERE isfinite(created_at))
