-- $1 lanes, $2 event types to leave out, $3 limit of each lane, $4 and $5 time and number behind which each lane is
-- read; infinity: from the start. Those first that became due last: what an operator has just released comes before
-- what is due and cannot go. The time is asked once: clock_timestamp() in the condition itself is asked for every row,
-- and then no index can serve it. The limit is hidden from the planner, see sweep.sql, and the types are left out
-- outside of another one, see read.sql. For times far away see held_keys.sql. Kinds: 1 retrying.
SELECT k.* FROM unnest($1::smallint[], $4::timestamptz[], $5::bigint[]) l(lane, due, seq) CROSS JOIN LATERAL (
    SELECT l.lane, h.kind, (extract(epoch FROM
               greatest(least(h.due, clock_timestamp() + interval '1 year'),
                        clock_timestamp() - interval '1 year') - clock_timestamp()
           ) * 1000000)::bigint,
           h.namespace, h.event_type, h.aggregate_type, h.aggregate_id, h.due, h.seq
      FROM (
        SELECT * FROM {schema}.outbox_held r
         WHERE r.lane = l.lane AND r.kind = 1
           AND (r.due, r.seq) < (least(l.due, (SELECT clock_timestamp())), l.seq)
         ORDER BY r.due DESC, r.seq DESC LIMIT (SELECT 9223372036854775807)
      ) h
     WHERE h.event_type NOT IN (SELECT unnest($2::text[])) LIMIT (SELECT $3::integer)
) k WHERE l.lane <> ALL(seen.lost)
