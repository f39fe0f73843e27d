-- $1 the most. Dead events that block their aggregates, the oldest first, and what each died of.
SELECT e.id::text, h.event_type, coalesce(e.last_error, ''),
       coalesce((SELECT d.error_reason FROM {schema}.outbox_dlq d WHERE d.event_id = e.id
                  ORDER BY d.id DESC LIMIT 1), '')
  FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
    SELECT h.lane, h.seq, h.event_type, h.since FROM {schema}.outbox_held h
     WHERE h.lane = l.lane AND h.kind = 4 ORDER BY h.since, h.seq LIMIT (SELECT $1::bigint)) h
 CROSS JOIN LATERAL (
    SELECT e.id, e.last_error FROM {schema}.outbox_events e WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
 ORDER BY h.since, h.seq LIMIT (SELECT $1::bigint)
