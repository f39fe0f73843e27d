-- Up to when a relay was there that has ended. What it knew goes with its end, and a day later it is forgotten itself.
SELECT greatest(max(r.ended_at), clock_timestamp() - interval '1 day') FROM {schema}.outbox_relays r
 WHERE r.ended_at IS NOT NULL
