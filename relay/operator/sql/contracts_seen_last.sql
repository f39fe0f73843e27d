-- When the last event of each of the types $1 was emitted, by the optional index on (event_type, seq).
SELECT t.name, e.created_at
  FROM unnest($1::text[]) t(name) CROSS JOIN LATERAL (
       SELECT e.created_at FROM {schema}.outbox_events e
        WHERE e.event_type = t.name ORDER BY e.seq DESC LIMIT (SELECT 1)) e
 WHERE isfinite(e.created_at)
