WITH due AS MATERIALIZED (
    SELECT id FROM bench.lease_events
     WHERE state = 0 AND (locked_until IS NULL OR locked_until < now())
     ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE bench.lease_events e SET locked_by = $1, locked_until = now() + interval '30 seconds'
  FROM due WHERE e.id = due.id
RETURNING e.seq, e.id, e.event_type, e.aggregate_type, e.aggregate_id, e.payload_json
