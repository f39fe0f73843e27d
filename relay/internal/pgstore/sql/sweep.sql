-- $1 lanes, $2 floors, $3 limit, $4 above which number each is looked at. A LIMIT whose value the planner knows, and
-- finds larger than what it expects, makes it read and sort everything; hidden in a sub-select it does not know it. The
-- condition on the state is outside of another one: see read.sql.
-- States: 0 ready.
SELECT r.* FROM unnest($1::smallint[], $2::bigint[], $4::bigint[]) l(lane, floor, above) CROSS JOIN LATERAL (
    SELECT l.lane, o.seq FROM (
        SELECT e.seq, e.state FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq <= l.floor AND e.seq > l.above
         ORDER BY e.seq LIMIT (SELECT 9223372036854775807)) o
     WHERE o.state = 0 LIMIT (SELECT $3::integer)
) r WHERE l.lane <> ALL(seen.lost) LIMIT $3::integer
