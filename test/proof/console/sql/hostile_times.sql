-- What topics carried in the last hour, whose names are texts of others; and why retention deletes nothing.
WITH texts AS (
    SELECT t, n::integer AS n FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY v(t, n)
), halted AS (
    UPDATE {schema}.outbox_retention r SET halted_at = now(), halt_reason = t->>'halt_reason'
      FROM texts WHERE r.kind = (ARRAY['published', 'dead', 'dedupe'])[n]
)
INSERT INTO {schema}.outbox_minutes (minute, topic, relay, arrived, published, rejected, terminal, topic_fault, unknown,
    died, latencies, pending, oldest)
SELECT date_trunc('minute', now()) - g.minute * interval '1 minute', t->>'topic', (t->>'relay_id')::uuid, 60, 60, 1, 1,
       1, 1, 1, array_fill(4::bigint, ARRAY[16]), 9, 12.5
  FROM texts CROSS JOIN generate_series(1, 60) g(minute)
