-- $1 relay, $2 its token, $3 lanes, $4 event types, $5 how many at most. A lane that is lost is left alone, the
-- others are not. The collation keeps the planner from the index over the types of all events, the order from
-- that of everything held, and the sum from both where the ids are known.
-- States: 1 retrying, 2 parked.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
)
UPDATE {schema}.outbox_events SET state = 1, next_attempt_at = clock_timestamp()
 WHERE state + 0 = 2 AND id = ANY (ARRAY(
    SELECT p.id FROM own CROSS JOIN unnest(own.lanes) l(lane) CROSS JOIN LATERAL (
        SELECT e.id FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 2
           AND e.event_type COLLATE "POSIX" = ANY($4::text[])
         ORDER BY e.next_attempt_at, e.seq LIMIT (SELECT $5::integer)) p
     WHERE l.lane = ANY($3::smallint[])
     LIMIT $5::integer))
