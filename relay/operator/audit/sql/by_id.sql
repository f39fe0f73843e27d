-- The events with the ids $1, a look into the index for each, which OFFSET keeps it.
SELECT e.id::text, e.seq, e.event_type, e.state, e.published_at
  FROM (SELECT DISTINCT u.id FROM unnest($1::text[]::uuid[]) u(id)) wanted CROSS JOIN LATERAL (
       SELECT e.id, e.seq, e.event_type, e.state, e.published_at FROM {schema}.outbox_events e
        WHERE e.id = wanted.id OFFSET 0) e
 ORDER BY e.id
