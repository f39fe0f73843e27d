-- $1 lanes, $2 floors, $3 limit, $4 above which number each is looked at. A LIMIT whose value the planner knows, and
-- finds larger than what it expects, makes it read and sort everything; hidden in a sub-select it does not know it.
-- States: 0 ready.
SELECT r.* FROM unnest($1::smallint[], $2::bigint[], $4::bigint[]) l(lane, floor, above) CROSS JOIN LATERAL (
    SELECT l.lane, e.seq FROM {schema}.outbox_events e
     WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 0
       AND e.seq <= l.floor AND e.seq > l.above
     ORDER BY e.seq LIMIT (SELECT $3::integer)
) r WHERE l.lane <> ALL(seen.lost) LIMIT $3::integer
