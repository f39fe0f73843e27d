-- $1 relay, $2 token, $3 and $4 lanes and the numbers behind which to read, $5 the last number, $6 rows of a lane.
-- The state is looked at outside a limit that the planner cannot see: after an ANALYZE while all is settled it would
-- otherwise read and sort everything that is ready.
WITH own AS MATERIALIZED (
    SELECT lanes FROM {schema}.outbox_relays WHERE id = $1::uuid AND token = $2::uuid AND ended_at IS NULL
)
SELECT e.lane, e.seq, e.id, e.event_type, e.aggregate_type, e.aggregate_id, e.payload_json
  FROM unnest($3::smallint[], $4::bigint[]) l(lane, bound)
 CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT * FROM {schema}.outbox_events r WHERE r.lane = l.lane AND r.seq > l.bound AND r.seq <= $5::bigint
         ORDER BY r.seq LIMIT (SELECT 9223372036854775807)
    ) o WHERE o.state = 0 LIMIT $6::integer
 ) e
 WHERE l.lane = ANY ((SELECT lanes FROM own)::smallint[])
