-- $1 relays whose types are known already. Who is there, and whether it has not beaten for a lease.
SELECT r.id, coalesce(b.until, r.started_at) < clock_timestamp() AS expired,
       CASE WHEN r.id <> ALL($1::uuid[]) THEN
           ARRAY(SELECT k.event_type FROM {schema}.outbox_known k WHERE k.relay = r.id ORDER BY k.event_type) END
  FROM {schema}.outbox_relays r
  LEFT JOIN LATERAL (
    SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1)) b ON true
 WHERE r.ended_at IS NULL ORDER BY r.id
