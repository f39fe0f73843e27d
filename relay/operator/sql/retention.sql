-- How the retention of each kind of row stands: the cut-off of its last run and when that was, how many rows it has
-- deleted, why it deletes nothing, whether somebody is at it; and how old what is there is at its low end, by a look
-- into the index: when the first event of a lane was made, the earliest of all lanes, and when the first dead letter
-- died. Of dedupe keys a viewer may not know.
SELECT r.kind, CASE WHEN isfinite(r.cut_off) THEN r.cut_off END, r.ran_at, r.deleted, r.halted_at, r.halt_reason,
       coalesce(r.work_until > clock_timestamp(), false),
       CASE r.kind
       WHEN 'published' THEN (
           SELECT min(low.created_at) FILTER (WHERE isfinite(low.created_at))
             FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
                  SELECT e.created_at FROM {schema}.outbox_events e
                   WHERE e.lane = l.lane ORDER BY e.seq LIMIT (SELECT 1)) low)
       WHEN 'dead' THEN (
           SELECT CASE WHEN isfinite(d.failed_at) THEN d.failed_at END
             FROM {schema}.outbox_dlq d ORDER BY d.failed_at, d.id LIMIT (SELECT 1))
       END
  FROM {schema}.outbox_retention r ORDER BY r.kind
