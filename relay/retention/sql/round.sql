-- $1 the kind, $2 who is at it, $3 for how long a round may last, in milliseconds. Answers where to go on, and the
-- highest number of an event. Where the last run stopped, the next one goes on: it walks over nothing that was deleted,
-- however long somebody's snapshot holds it. What is settled behind that place only then, or written there by a
-- transaction that was open, goes in the next round, which begins at the low end.
UPDATE {schema}.outbox_retention r
   SET place = CASE WHEN o.is_over THEN 0 ELSE r.place END,
       round_at = CASE WHEN o.is_over THEN clock_timestamp() ELSE r.round_at END
  FROM (SELECT b.kind, b.round_at IS NULL OR b.round_at NOT BETWEEN clock_timestamp()
               - $3::bigint * interval '1 millisecond' AND clock_timestamp() AS is_over
          FROM {schema}.outbox_retention b) o
 WHERE r.kind = $1::text AND r.worker = $2::text::uuid AND o.kind = r.kind
RETURNING r.place, coalesce((
    SELECT max(e.seq) FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
        SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane ORDER BY e.seq DESC LIMIT (SELECT 1)) e), 0)
