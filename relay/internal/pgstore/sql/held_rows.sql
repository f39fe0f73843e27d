-- $1-$4 lane and aggregate of each ask, $5 whether it asks for all types, $6 and $7 the types: number of the
-- ask and type, $8 limit of each ask. Payloads only of rows that may be published. The
-- limit is hidden from the planner, see sweep.sql. For times far away see held_keys.sql.
WITH ask AS MATERIALIZED (
    SELECT a.*, ARRAY(SELECT t.type FROM unnest($6::integer[], $7::text[]) t(ask, type) WHERE t.ask = a.number) AS types
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::text[], $5::boolean[]) WITH ORDINALITY
           a(lane, namespace, aggregate_type, aggregate_id, all_types, number)
)
SELECT r.* FROM ask CROSS JOIN LATERAL (
    SELECT ask.lane, e.seq, e.id, e.state, e.attempt_count, e.created_at,
           CASE WHEN e.next_attempt_at IS NOT NULL THEN (extract(epoch FROM
               greatest(least(e.next_attempt_at, clock_timestamp() + interval '1 year'), clock_timestamp() - interval '1 year') - clock_timestamp()
           ) * 1000000)::bigint END, e.namespace, e.event_type, e.aggregate_type,
           e.aggregate_id, e.tenant_id, e.dedupe_key,
           CASE WHEN e.state IN (1, 3) THEN e.payload_json END, CASE WHEN e.state IN (1, 3) THEN e.headers END
      FROM {schema}.outbox_events e
     WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = ask.lane
       AND e.namespace = ask.namespace AND e.aggregate_type = ask.aggregate_type AND e.aggregate_id = ask.aggregate_id
       AND e.state IN (1, 2, 3, 4) AND (ask.all_types OR e.event_type COLLATE "POSIX" = ANY(ask.types))
     ORDER BY e.seq LIMIT (SELECT $8::integer)
) r
