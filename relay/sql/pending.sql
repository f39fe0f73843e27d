-- What a relay would send or look at: ready, retrying, parked, waiting.
-- States: 0 ready, 1 retrying, 2 parked, 3 waiting.
SELECT event_type, state, count(*), min(created_at), max(created_at)
  FROM {schema}.outbox_events WHERE state IN (0, 1, 2, 3)
 GROUP BY event_type, state ORDER BY event_type, state
