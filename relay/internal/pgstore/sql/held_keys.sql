-- $1 lanes. What is further away than a year is a year away: a row that is due at infinity has no distance, and would
-- fail the statement for all others.
SELECT k.* FROM unnest($1::smallint[]) l(lane) CROSS JOIN LATERAL (
    SELECT DISTINCT ON (e.namespace, e.aggregate_type, e.aggregate_id, e.event_type)
           l.lane, e.state, CASE WHEN e.next_attempt_at IS NOT NULL THEN (extract(epoch FROM
               greatest(least(e.next_attempt_at, clock_timestamp() + interval '1 year'), clock_timestamp() - interval '1 year') - clock_timestamp()
           ) * 1000000)::bigint END,
           e.namespace, e.event_type, e.aggregate_type, e.aggregate_id
      FROM {schema}.outbox_events e
     WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state IN (1, 2, 3, 4)
     ORDER BY e.namespace, e.aggregate_type, e.aggregate_id, e.event_type, e.seq
) k
