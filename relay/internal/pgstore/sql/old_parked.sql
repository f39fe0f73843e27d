-- $1 lanes, $2 age in microseconds, $3 limit, of each lane as well: without it the lanes would be a filter
-- on everything that is parked; $4 event types to leave out. By since when it is parked, which is the order of the
-- index. For the limits see due_keys.sql. Kinds: 2 parked.
SELECT r.lane, r.seq, e.id, r.kind, e.attempt_count, e.created_at, NULL::bigint, r.namespace, r.event_type,
       r.aggregate_type, r.aggregate_id, e.tenant_id, e.dedupe_key, NULL::json, NULL::json, false, r.version
  FROM (
    SELECT h.* FROM unnest($1::smallint[]) l(lane) CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT * FROM {schema}.outbox_held p
             WHERE p.lane = l.lane AND p.kind = 2
               AND p.since <= (SELECT clock_timestamp() - $2::bigint * interval '1 microsecond')
             ORDER BY p.since, p.seq LIMIT (SELECT 9223372036854775807)
        ) p
         WHERE p.event_type <> ALL($4::text[]) LIMIT (SELECT $3::integer)
    ) h WHERE l.lane <> ALL(seen.lost) LIMIT $3::integer
  ) r
 CROSS JOIN LATERAL (
    SELECT * FROM {schema}.outbox_events e WHERE e.lane = r.lane AND e.seq = r.seq LIMIT (SELECT 1)) e
