-- $1 rows: ready, each of a type that nobody knows.
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
SELECT public.outbox_lane('default', 'thing', a), public.outbox_uuid7(), 'made_up_' || i, 'thing', a, '{}'
  FROM generate_series(1, $1::integer) i CROSS JOIN LATERAL (SELECT 'a' || i AS a) a
