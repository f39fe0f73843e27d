-- $1 lanes, $2 watermark and $3 cursor of each, $4 limit of each, $5 and $6 open writers as xid and low, $7
-- relay and $8 its token, or null, $9 event types to leave out, $10 how many numbers to look at in each lane.
--
-- The statement's own snapshot decides which of the writers have ended, and reads from the lowest number
-- that one of them can have drawn. Of a lane that is not the relay's any more nothing is read: what its new owner has
-- done would be taken for the whole. The first row says who and which they were; it is there when nothing else is.
--
-- The inner query has a limit that is none, hidden in a sub-select. It keeps the conditions out: after an ANALYZE while
-- all is settled the planner expects hardly a row that is ready, and would read and sort everything above the bound
-- instead of walking the index until it has enough.
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
       NULL::text AS dedupe_key, NULL::json AS payload_json, NULL::json AS headers, NULL::boolean AS stray,
       xids AS gone, lost, {incarnation} AS incarnation
  FROM gone
UNION ALL
SELECT e.*, NULL, NULL, NULL
  FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::integer[], $10::bigint[]) l(lane, w, c, lim, numbers)
 CROSS JOIN LATERAL (SELECT greatest(l.w, least(l.c, (SELECT low FROM gone))) AS seq) bound
 CROSS JOIN LATERAL (
    SELECT o.lane, o.seq, o.id, o.state, o.attempt_count, o.created_at, NULL::bigint, o.namespace, o.event_type,
           o.aggregate_type, o.aggregate_id, o.tenant_id, o.dedupe_key, o.payload_json, o.headers,
           o.lane <> {schema}.outbox_lane(o.namespace, o.aggregate_type, o.aggregate_id)
      FROM (
        SELECT * FROM {schema}.outbox_events r
         WHERE r.lane = l.lane AND r.seq > bound.seq AND r.seq <= bound.seq + l.numbers
         ORDER BY r.seq LIMIT (SELECT 9223372036854775807)
      ) o
     WHERE o.state = 0 AND o.event_type NOT IN (SELECT unnest($9::text[]))
     LIMIT CASE WHEN l.lane = ANY ((SELECT lost FROM gone)::smallint[]) THEN 0 ELSE l.lim END
) e
