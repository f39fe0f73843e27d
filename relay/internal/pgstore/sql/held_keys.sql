-- $1-$5 lanes, and namespace, aggregate and event type from which on each is read, $6 limit; null: none. One step of
-- the index from each first row to the next: hundreds of thousands may wait behind them, and a new owner has a third of
-- its lease. The lanes come in the order asked for. The limit is hidden from the planner, see sweep.sql. What is
-- further away than a year is a year away: a row that is due at infinity has no distance, and would fail the statement
-- for all others.
SELECT l.lane, k.kind, (extract(epoch FROM
           greatest(least(k.due, clock_timestamp() + interval '1 year'),
                    clock_timestamp() - interval '1 year') - clock_timestamp()
       ) * 1000000)::bigint, k.namespace, k.event_type, k.aggregate_type, k.aggregate_id
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::text[])
       l(lane, namespace, aggregate_type, aggregate_id, event_type) CROSS JOIN LATERAL (
    WITH RECURSIVE first AS (
        (SELECT h.kind, h.due, h.namespace, h.aggregate_type, h.aggregate_id, h.event_type
           FROM {schema}.outbox_held h
          WHERE h.lane = l.lane AND (h.namespace, h.aggregate_type, h.aggregate_id, h.event_type)
                >= (l.namespace, l.aggregate_type, l.aggregate_id, l.event_type)
          ORDER BY h.namespace, h.aggregate_type, h.aggregate_id, h.event_type, h.seq LIMIT (SELECT 1))
        UNION ALL
        SELECT next.* FROM first CROSS JOIN LATERAL (
            SELECT h.kind, h.due, h.namespace, h.aggregate_type, h.aggregate_id, h.event_type
              FROM {schema}.outbox_held h
             WHERE h.lane = l.lane AND (h.namespace, h.aggregate_type, h.aggregate_id, h.event_type)
                   > (first.namespace, first.aggregate_type, first.aggregate_id, first.event_type)
             ORDER BY h.namespace, h.aggregate_type, h.aggregate_id, h.event_type, h.seq LIMIT (SELECT 1)) next
    )
    SELECT * FROM first
) k WHERE l.lane <> ALL(seen.lost) LIMIT (SELECT $6::integer)
