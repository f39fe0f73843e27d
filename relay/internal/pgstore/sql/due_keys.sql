-- $1 lanes, $2 event types to leave out, $3 limit of each lane, $4 and $5 time and number behind which each lane is
-- read; infinity: from the start. Those first that became due last: what an operator has just released comes before
-- what is due and cannot go. The time is asked once: clock_timestamp() in the condition itself is asked for every row,
-- and then no index can serve it. The limit is hidden from the planner, see sweep.sql. For times far away see
-- held_keys.sql. States: 1 retrying.
SELECT k.* FROM unnest($1::smallint[], $4::timestamptz[], $5::bigint[]) l(lane, due, seq) CROSS JOIN LATERAL (
    SELECT l.lane, e.state, (extract(epoch FROM
               greatest(least(e.next_attempt_at, clock_timestamp() + interval '1 year'),
                        clock_timestamp() - interval '1 year') - clock_timestamp()
           ) * 1000000)::bigint,
           e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.next_attempt_at, e.seq
      FROM {schema}.outbox_events e
     WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 1
       AND (e.next_attempt_at, e.seq) < (least(l.due, (SELECT clock_timestamp())), l.seq)
       AND e.event_type <> ALL($2::text[])
     ORDER BY e.next_attempt_at DESC, e.seq DESC LIMIT (SELECT $3::integer)
) k WHERE l.lane <> ALL(seen.lost)
