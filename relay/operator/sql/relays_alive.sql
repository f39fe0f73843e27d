-- The relays that are alive, at most 1,000, the oldest first.
SELECT r.id::text, r.name, cardinality(r.lanes)
  FROM {schema}.outbox_relays r CROSS JOIN LATERAL (
       SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1)) b
 WHERE r.ended_at IS NULL AND b.until >= clock_timestamp()
 ORDER BY r.started_at, r.id LIMIT (SELECT 1000)
