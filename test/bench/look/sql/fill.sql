-- $1 events of 30 days, in order: twenty types and a rare one, $1 / 5 aggregates of five events each, all published but
-- for one in 2,000 that is dead. The ids are of the time at which the events were made.
INSERT INTO public.outbox_events (lane, id, created_at, published_at, state, event_type, aggregate_type, aggregate_id,
    tenant_id, attempt_count, last_error, payload_json)
SELECT public.outbox_lane('default', 'order', e.a), e.id, e.at,
       CASE WHEN e.dead THEN NULL ELSE e.at + interval '40 ms' END, CASE WHEN e.dead THEN 5 ELSE 6 END,
       CASE WHEN e.i % 50000 = 7 THEN 'order_audited' ELSE 'order_event_' || e.i % 20 END, 'order', e.a,
       'tenant_' || e.i % 1000, CASE WHEN e.dead THEN 10 ELSE 0 END,
       CASE WHEN e.dead THEN 'rejected: field "amount" is missing' END,
       ('{"version":1,"eventId":"' || e.id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"n":' || e.i ||
        ',"note":"an order of somebody who has written a line about it"}}')::json
  FROM (
    SELECT g.i, t.at, g.i % 2000 = 3 AS dead, 'o' || (g.i * 7919::bigint) % greatest($1::integer / 5, 1) AS a,
           (lpad(to_hex((extract(epoch FROM t.at) * 1000)::bigint), 12, '0') || '7' ||
            substr(md5(g.i::text), 1, 3) || '8' || substr(md5(g.i::text), 4, 15))::uuid AS id
      FROM generate_series(1, $1::integer) g(i)
     CROSS JOIN LATERAL (
           SELECT now() - interval '30 days' + g.i * (interval '30 days' / $1::integer) AS at) t
    OFFSET 0
  ) e
