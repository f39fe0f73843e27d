-- $1 and $2 lanes and tokens, $3 event types, $4 how many at most. A lane that is lost is left alone, the
-- others are not. The collation keeps the planner from the index over the types of all events, the order from
-- that of everything held, and the sum from both where the ids are known.
-- States: 1 retrying, 2 parked.
WITH own AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l
      JOIN unnest($1::smallint[], $2::uuid[]) t(lane, token) ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR KEY SHARE OF l
)
UPDATE {schema}.outbox_events SET state = 1, next_attempt_at = clock_timestamp()
 WHERE state + 0 = 2 AND id = ANY (ARRAY(
    SELECT p.id FROM own CROSS JOIN LATERAL (
        SELECT e.id FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = own.lane AND e.state = 2
           AND e.event_type COLLATE "POSIX" = ANY($3::text[])
         ORDER BY e.next_attempt_at, e.seq LIMIT (SELECT $4::integer)) p
     LIMIT $4::integer))
