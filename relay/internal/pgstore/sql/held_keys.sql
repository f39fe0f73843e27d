-- $1 lanes. One step of the index from each first row to the next: hundreds of thousands may wait behind them, and a
-- new owner has a third of its lease. The limit is hidden from the planner, see sweep.sql. What is further away than a
-- year is a year away: a row that is due at infinity has no distance, and would fail the statement for all others.
-- States: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
SELECT l.lane, k.state, CASE WHEN k.next_attempt_at IS NOT NULL THEN (extract(epoch FROM
           greatest(least(k.next_attempt_at, clock_timestamp() + interval '1 year'),
                    clock_timestamp() - interval '1 year') - clock_timestamp()
       ) * 1000000)::bigint END, k.namespace, k.event_type, k.aggregate_type, k.aggregate_id
  FROM unnest($1::smallint[]) l(lane) CROSS JOIN LATERAL (
    WITH RECURSIVE first AS (
        (SELECT e.state, e.next_attempt_at, e.namespace, e.aggregate_type, e.aggregate_id, e.event_type
           FROM {schema}.outbox_events e
          WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state IN (1, 2, 3, 4)
          ORDER BY e.namespace, e.aggregate_type, e.aggregate_id, e.event_type, e.seq LIMIT (SELECT 1))
        UNION ALL
        SELECT next.* FROM first CROSS JOIN LATERAL (
            SELECT e.state, e.next_attempt_at, e.namespace, e.aggregate_type, e.aggregate_id, e.event_type
              FROM {schema}.outbox_events e
             WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane
               AND e.state IN (1, 2, 3, 4)
               AND (e.namespace, e.aggregate_type, e.aggregate_id, e.event_type)
                   > (first.namespace, first.aggregate_type, first.aggregate_id, first.event_type)
             ORDER BY e.namespace, e.aggregate_type, e.aggregate_id, e.event_type, e.seq LIMIT (SELECT 1)) next
    )
    SELECT * FROM first
) k WHERE l.lane <> ALL(seen.lost)
