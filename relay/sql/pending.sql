-- What a relay would send or look at: ready, retrying, parked, waiting. At or below a lane's floor nothing is ready,
-- unless the sequence stands below it: then what was emitted since has such numbers, and the whole lane is counted.
-- The limit, and OFFSET, keep the looks into the index.
-- States: 0 ready, 1 retrying, 2 parked, 3 waiting.
WITH drawn AS MATERIALIZED (
    SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END AS last
      FROM {schema}.outbox_events_seq_seq s
), pending AS (
    SELECT e.event_type, e.state, e.created_at
      FROM {schema}.outbox_lane_status l CROSS JOIN drawn d CROSS JOIN LATERAL (
        SELECT e.event_type, e.state, e.created_at FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq > CASE WHEN l.floor <= d.last THEN l.floor ELSE 0 END
         ORDER BY e.seq LIMIT (SELECT 9223372036854775807)) e
     WHERE e.state = 0
    UNION ALL
    SELECT h.event_type, h.kind, e.created_at
      FROM {schema}.outbox_held h CROSS JOIN LATERAL (
        SELECT e.created_at FROM {schema}.outbox_events e WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
     WHERE h.kind IN (1, 2, 3)
)
SELECT p.event_type, p.state, count(*), min(p.created_at), max(p.created_at)
  FROM pending p GROUP BY p.event_type, p.state ORDER BY p.event_type, p.state
