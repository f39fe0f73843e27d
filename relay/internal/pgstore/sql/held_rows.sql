-- $1-$4 lane and aggregate of each ask, $5 number of its list of types, $6 and $7 the lists: number and type, $8 limit
-- of each ask. Each type is read by itself, up to the limit: what waits of other types, for another topic, is not
-- looked at. Payloads only of rows that may be published. The limits are hidden from the planner, see sweep.sql. For
-- times far away see held_keys.sql.
-- Kinds: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
SELECT r.lane, r.seq, e.id, r.kind, e.attempt_count, e.created_at,
       (extract(epoch FROM
           greatest(least(r.due, clock_timestamp() + interval '1 year'),
                    clock_timestamp() - interval '1 year') - clock_timestamp()
       ) * 1000000)::bigint,
       r.namespace, r.event_type, r.aggregate_type, r.aggregate_id, e.tenant_id, e.dedupe_key,
       CASE WHEN r.kind IN (1, 3) THEN e.payload_json END, CASE WHEN r.kind IN (1, 3) THEN e.headers END,
       r.lane <> {schema}.outbox_lane(r.namespace, r.aggregate_type, r.aggregate_id), r.version
  FROM (
    SELECT ask.number, h.*, row_number() OVER (PARTITION BY ask.number ORDER BY h.seq) AS place
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::integer[]) WITH ORDINALITY
           ask(lane, namespace, aggregate_type, aggregate_id, list, number)
      JOIN unnest($6::integer[], $7::text[]) type(list, event_type) ON type.list = ask.list
     CROSS JOIN LATERAL (
        SELECT * FROM {schema}.outbox_held h
         WHERE h.lane = ask.lane AND h.namespace = ask.namespace AND h.aggregate_type = ask.aggregate_type
           AND h.aggregate_id = ask.aggregate_id AND h.event_type = type.event_type
         ORDER BY h.seq LIMIT (SELECT $8::integer)
     ) h
     WHERE ask.lane <> ALL(seen.lost)
  ) r
 CROSS JOIN LATERAL (
    SELECT * FROM {schema}.outbox_events e WHERE e.lane = r.lane AND e.seq = r.seq LIMIT (SELECT 1)) e
 WHERE r.place <= $8::integer
 ORDER BY r.number, r.seq
