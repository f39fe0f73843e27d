-- $1-$8 as in read.sql, $9 event types to leave out.
--
-- The inner query has a limit that is none, hidden in a sub-select. It keeps the condition on the types out:
-- with that inside the planner expects few rows, and reads and sorts all that is ready instead of walking the
-- index until it has enough, or takes the index over the types of all events, published ones included. And a
-- limit that the planner does not know makes it prefer a plan that begins at once.
-- States: 0 ready.
WITH gone AS MATERIALIZED (
    SELECT coalesce(array_agg(x), '{}') AS xids, min(low) AS low,
           {lost} AS lost
      FROM unnest($5::bigint[], $6::bigint[]) t(x, low)
     WHERE pg_visible_in_snapshot(x::text::xid8, pg_current_snapshot())
)
SELECT NULL::smallint AS lane, NULL::bigint AS seq, NULL::uuid AS id, NULL::smallint AS state,
       NULL::integer AS attempt_count, NULL::timestamptz AS created_at, NULL::bigint AS due_in, NULL::text AS namespace,
       NULL::text AS event_type, NULL::text AS aggregate_type, NULL::text AS aggregate_id, NULL::text AS tenant_id,
       NULL::text AS dedupe_key, NULL::json AS payload_json, NULL::json AS headers, xids AS gone, lost,
       {incarnation} AS incarnation
  FROM gone
UNION ALL
SELECT e.*, NULL, NULL, NULL FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::integer[]) l(lane, w, c, lim)
 CROSS JOIN LATERAL (
    SELECT l.lane, o.seq, o.id, o.state, o.attempt_count, o.created_at, NULL::bigint, o.namespace, o.event_type,
           o.aggregate_type, o.aggregate_id, o.tenant_id, o.dedupe_key, o.payload_json, o.headers
      FROM (
        SELECT * FROM {schema}.outbox_events r
         WHERE {schema}.outbox_lane(r.namespace, r.aggregate_type, r.aggregate_id) = l.lane AND r.state = 0
           AND r.seq > greatest(l.w, least(l.c, (SELECT low FROM gone)))
         ORDER BY r.seq LIMIT (SELECT 9223372036854775807)
      ) o
     WHERE o.event_type <> ALL($9::text[])
     LIMIT CASE WHEN l.lane = ANY ((SELECT lost FROM gone)::smallint[]) THEN 0 ELSE l.lim END
) e
