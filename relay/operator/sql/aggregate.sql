-- The events of the aggregate $1 and $2 in their order: those that are open, and the newest $3; at most $4 in all,
-- and of $5 that are looked at. The first column is how many were. States: 6 published, 7 discarded.
SELECT e.looked, e.id::text, e.seq, e.lane, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.tenant_id, ''), coalesce(h.kind, e.state), greatest(least(e.created_at, '9999-12-31'), '0001-01-01'),
       CASE WHEN isfinite(e.published_at) THEN e.published_at END, CASE WHEN isfinite(h.since) THEN h.since END,
       CASE WHEN h.due IS NOT NULL THEN greatest(least(h.due, '9999-12-31'), '0001-01-01') END,
       e.attempt_count, coalesce(e.last_error, ''), NULL, NULL, NULL
  FROM (SELECT e.*, count(*) OVER () AS looked, row_number() OVER (ORDER BY e.seq DESC) AS newest,
               row_number() OVER (PARTITION BY e.state IN (6, 7) ORDER BY e.seq) AS oldest
          FROM (SELECT {columns} FROM {schema}.outbox_events e
                 WHERE e.aggregate_type = $1::text AND e.aggregate_id = $2::text
                 LIMIT (SELECT $5::integer)) e) e
  LEFT JOIN LATERAL (
       SELECT h.kind, h.since, h.due FROM {schema}.outbox_held h
        WHERE e.state = 1 AND h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
 WHERE e.newest <= $3::integer OR e.state NOT IN (6, 7) AND e.oldest <= $4::integer
 ORDER BY e.seq
