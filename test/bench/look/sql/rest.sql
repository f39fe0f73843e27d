-- What stands beside the events: dead letters, a relay that holds all lanes, an aggregate whose head is dead with
-- others behind it, retries and parked events.
INSERT INTO public.outbox_dlq (event_seq, event_id, created_at, failed_at, attempts, blocking, namespace, event_type,
    aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json)
SELECT e.seq, e.id, e.created_at, e.created_at + interval '1 minute', 10, false, e.namespace, e.event_type,
       e.aggregate_type, e.aggregate_id, 'orders', 'max_attempts', e.last_error, e.payload_json
  FROM public.outbox_events e WHERE e.state = 5;
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, payload_json)
SELECT public.outbox_lane('default', 'order', 'blocked'), public.outbox_uuid7(), 'order_event_1', 'order', 'blocked', 1,
       '{}' FROM generate_series(1, 5000);
INSERT INTO public.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
SELECT e.lane, e.seq, CASE WHEN row_number() OVER (ORDER BY e.seq) = 1 THEN 4 ELSE 3 END, NULL, e.namespace,
       e.event_type, e.aggregate_type, e.aggregate_id
  FROM public.outbox_events e WHERE e.aggregate_type = 'order' AND e.aggregate_id = 'blocked';
INSERT INTO public.outbox_relays (id, token, name) VALUES (gen_random_uuid(), gen_random_uuid(), 'bench');
INSERT INTO public.outbox_beats (relay, number, until)
SELECT id, 1, clock_timestamp() + interval '1 day' FROM public.outbox_relays;
INSERT INTO public.outbox_known (relay, event_type, topic)
SELECT r.id, 'order_event_' || i, 'orders' FROM public.outbox_relays r CROSS JOIN generate_series(0, 19) i;
UPDATE public.outbox_relays SET lanes = ARRAY(SELECT lane FROM public.outbox_lanes ORDER BY lane);
UPDATE public.outbox_lanes l SET owner = r.id, token = r.token, acquired_at = clock_timestamp(),
       floor = (SELECT max(e.seq) FROM public.outbox_events e)
  FROM public.outbox_relays r;
