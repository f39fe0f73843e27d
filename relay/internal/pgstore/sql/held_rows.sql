-- $1-$4 lane and aggregate of each ask, $5 number of its list of types, $6 and $7 the lists: number and type, $8 limit
-- of each ask. Each type is read by itself, up to the limit: what waits of other types, for another topic, is not
-- looked at. Payloads only of rows that may be published. The limit is hidden from the planner, see sweep.sql. For
-- times far away see held_keys.sql.
-- States: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
SELECT r.lane, r.seq, r.id, r.state, r.attempt_count, r.created_at, r.due_in, r.namespace, r.event_type,
       r.aggregate_type, r.aggregate_id, r.tenant_id, r.dedupe_key, r.payload_json, r.headers, r.next_attempt_at
  FROM (
    SELECT ask.number, ask.lane, e.*, row_number() OVER (PARTITION BY ask.number ORDER BY e.seq) AS place
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::integer[]) WITH ORDINALITY
           ask(lane, namespace, aggregate_type, aggregate_id, list, number)
      JOIN unnest($6::integer[], $7::text[]) type(list, event_type) ON type.list = ask.list
     CROSS JOIN LATERAL (
        SELECT e.seq, e.id, e.state, e.attempt_count, e.created_at,
               CASE WHEN e.next_attempt_at IS NOT NULL THEN (extract(epoch FROM
                   greatest(least(e.next_attempt_at, clock_timestamp() + interval '1 year'),
                            clock_timestamp() - interval '1 year') - clock_timestamp()
               ) * 1000000)::bigint END AS due_in, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
               e.tenant_id, e.dedupe_key,
               CASE WHEN e.state IN (1, 3) THEN e.payload_json END AS payload_json,
                    CASE WHEN e.state IN (1, 3) THEN e.headers END AS headers,
               e.next_attempt_at
          FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = ask.lane
           AND e.namespace = ask.namespace AND e.aggregate_type = ask.aggregate_type
           AND e.aggregate_id = ask.aggregate_id
           AND e.event_type = type.event_type AND e.state IN (1, 2, 3, 4)
         ORDER BY e.seq LIMIT (SELECT $8::integer)
     ) e
     WHERE ask.lane <> ALL(seen.lost)
  ) r
 WHERE r.place <= $8::integer
 ORDER BY r.number, r.seq
