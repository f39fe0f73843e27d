-- $1-$3 lanes, and time and number behind which each is read, $4 age in microseconds, $5 how many rows to look at;
-- null: all; $6 event types to leave out. The lanes come in the order asked for, and each by since when it is parked,
-- which is the order of the index. Every row says in front which one it is that was looked at; of one that is left out
-- nothing else is told, and it is there only if it is the last. For the limits see due_keys.sql. Kinds: 2 parked.
SELECT r.lane, r.since, r.seq, r.number, e.*, r.version
  FROM (
    SELECT p.*, row_number() OVER () AS number, count(*) OVER () AS looked
      FROM (
        SELECT h.* FROM unnest($1::smallint[], $2::timestamptz[], $3::bigint[]) l(lane, since, seq) CROSS JOIN LATERAL (
            SELECT * FROM {schema}.outbox_held p
             WHERE p.lane = l.lane AND p.kind = 2 AND (p.since, p.seq) > (l.since, l.seq)
               AND p.since <= (SELECT clock_timestamp() - $4::bigint * interval '1 microsecond')
             ORDER BY p.since, p.seq LIMIT (SELECT $5::integer)
        ) h WHERE l.lane <> ALL(seen.lost) LIMIT (SELECT $5::integer)
      ) p
  ) r
  LEFT JOIN LATERAL (
    SELECT e.lane, e.seq, e.id, r.kind, e.attempt_count, e.created_at, NULL::bigint, r.namespace, r.event_type,
           r.aggregate_type, r.aggregate_id, e.tenant_id, e.dedupe_key, NULL::json, NULL::json, false
      FROM {schema}.outbox_events e
     WHERE e.lane = r.lane AND e.seq = r.seq AND r.event_type NOT IN (SELECT unnest($6::text[]))
     LIMIT (SELECT 1)
  ) e ON true
 WHERE e.id IS NOT NULL OR r.number = r.looked
 ORDER BY r.number
