-- $1 lanes, $2 age in microseconds, $3 limit, of each lane as well: without it the lanes would be a filter
-- on everything that is held; $4 event types to leave out. A parked row's next_attempt_at is since when it is parked,
-- which is the order of the index.
-- States: 2 parked.
SELECT r.* FROM unnest($1::smallint[]) l(lane) CROSS JOIN LATERAL (
    SELECT l.lane, e.seq, e.id, e.state, e.attempt_count, e.created_at, NULL::bigint, e.namespace, e.event_type,
           e.aggregate_type, e.aggregate_id, e.tenant_id, e.dedupe_key, NULL::json, NULL::json, e.next_attempt_at
      FROM {schema}.outbox_events e
     WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 2
       AND e.next_attempt_at <= (SELECT clock_timestamp() - $2::bigint * interval '1 microsecond')
       AND e.event_type <> ALL($4::text[])
     ORDER BY e.next_attempt_at, e.seq LIMIT (SELECT $3::integer)
) r WHERE l.lane <> ALL(seen.lost) LIMIT $3::integer
