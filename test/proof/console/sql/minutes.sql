-- What two relays would have written down of the last six hours: waves, with an hour in which invoices failed.
INSERT INTO {schema}.outbox_minutes (minute, topic, relay, arrived, published, rejected, terminal, topic_fault, unknown,
    died, latencies, pending, oldest)
SELECT m.minute, t.topic, r.relay, f.events + f.bad, f.events, f.slow, f.bad, 0, 0, f.bad,
       ARRAY[f.events / 8, f.events / 4, f.events / 4, f.events / 8, f.events / 8, f.events / 16, f.slow, f.slow / 2, 0,
           0, 0, 0, 0, 0, 0, 0]::bigint[], f.events / 10 + f.bad, 0.4 + 0.2 * sin(m.n / 25.0) + f.slow / 3.0
  FROM generate_series(date_trunc('minute', now()) - interval '6 hours',
           date_trunc('minute', now()) - interval '1 minute', interval '1 minute') WITH ORDINALITY m(minute, n)
 CROSS JOIN (VALUES ('orders', 400), ('payments', 380), ('invoices', 90), ('prices', 40), ('emails', 150)
       ) t(topic, size)
 CROSS JOIN (VALUES ('018f0000-0000-7000-8000-000000000001'::uuid), ('018f0000-0000-7000-8000-000000000002')) r(relay)
 CROSS JOIN LATERAL (
    SELECT (t.size * (1.2 + sin(m.n / 40.0) + 0.2 * sin(m.n * 1.7)))::bigint AS events,
           CASE WHEN t.topic = 'invoices' AND m.n > 300 THEN 3 ELSE 0 END AS bad,
           CASE WHEN m.n BETWEEN 200 AND 230 THEN 12 ELSE 0 END AS slow) f
