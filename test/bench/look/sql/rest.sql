-- What stands beside the events of 30 days, as it does after a day that did not go well. The ids are a millisecond
-- apart: how many are made in the same one, and so lie in no order, must not depend on the machine.
CREATE FUNCTION pg_temp.id_after(since interval, i bigint) RETURNS uuid LANGUAGE sql AS $id$
    SELECT (lpad(to_hex((extract(epoch FROM now() - since) * 1000)::bigint + i), 12, '0') || '7' ||
            substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid $id$;

-- Each type has a topic of its own, and a relay that holds all lanes knows them all.
INSERT INTO public.outbox_relays (id, token, name) VALUES (gen_random_uuid(), gen_random_uuid(), 'bench');
INSERT INTO public.outbox_beats (relay, number, until)
SELECT id, 1, clock_timestamp() + interval '1 day' FROM public.outbox_relays;
INSERT INTO public.outbox_known (relay, event_type, topic)
SELECT r.id, 'order_event_' || i, CASE i WHEN 0 THEN 'orders' ELSE 'orders_' || i END
  FROM public.outbox_relays r CROSS JOIN generate_series(0, 19) i;
UPDATE public.outbox_relays SET lanes = ARRAY(SELECT lane FROM public.outbox_lanes ORDER BY lane);
UPDATE public.outbox_lanes l SET owner = r.id, token = r.token, acquired_at = clock_timestamp() - interval '1 hour',
       floor = (SELECT max(e.seq) FROM public.outbox_events e)
  FROM public.outbox_relays r;
INSERT INTO public.outbox_identity (system_identifier, timeline)
SELECT system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
  FROM pg_control_system();
UPDATE public.outbox_retention SET ran_at = now(), cut_off = now() - interval '30 days';

-- Behind a dead head of an aggregate 5,000 others wait.
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, attempt_count, last_error,
    payload_json)
SELECT public.outbox_lane('default', 'order', 'blocked'), pg_temp.id_after('600 s', i), 'order_event_1', 'order',
       'blocked', 1, CASE i WHEN 1 THEN 10 ELSE 0 END,
       CASE i WHEN 1 THEN 'rejected: field "amount" is missing' END, '{}'
  FROM generate_series(1, 5000) i;
INSERT INTO public.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
SELECT e.lane, e.seq, CASE WHEN row_number() OVER (ORDER BY e.seq) = 1 THEN 4 ELSE 3 END, NULL, e.namespace,
       e.event_type, e.aggregate_type, e.aggregate_id
  FROM public.outbox_events e WHERE e.aggregate_type = 'order' AND e.aggregate_id = 'blocked';

-- 300 wait for their next attempt, each of an aggregate of its own.
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, attempt_count, last_error,
    payload_json)
SELECT public.outbox_lane('default', 'order', 'retried ' || i), pg_temp.id_after('500 s', i), 'order_event_2', 'order',
       'retried ' || i, 1, 3, 'rejected: too many requests', '{}'
  FROM generate_series(1, 300) i;
INSERT INTO public.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
SELECT e.lane, e.seq, 1, now() + interval '1 hour', e.namespace, e.event_type, e.aggregate_type, e.aggregate_id
  FROM public.outbox_events e WHERE e.aggregate_type = 'order' AND e.aggregate_id ~ '^retried' AND e.state = 1;

-- One in 100 of all is ready since some minutes, and 25,000 of one aggregate: more than an explanation looks at.
INSERT INTO public.outbox_events (lane, id, created_at, event_type, aggregate_type, aggregate_id, payload_json)
SELECT public.outbox_lane('default', 'order', 'r' || i), pg_temp.id_after('400 s', i), now() - interval '5 minutes',
       'order_event_' || i % 20, 'order', 'r' || i, '{"version":1,"data":{"note":"an order of somebody"}}'
  FROM generate_series(1, (SELECT count(*) / 100 FROM public.outbox_events)) i;
INSERT INTO public.outbox_events (lane, id, created_at, event_type, aggregate_type, aggregate_id, payload_json)
SELECT public.outbox_lane('default', 'order', 'busy'), pg_temp.id_after('200 s', i), now() - interval '5 minutes',
       'order_event_3', 'order', 'busy', '{"version":1,"data":{"note":"an order of somebody"}}'
  FROM generate_series(1, 25000) i;

-- Every dead event has its letter; an operator has discarded those of the first 20 days.
INSERT INTO public.outbox_dlq (event_seq, event_id, created_at, failed_at, attempts, blocking, namespace, event_type,
    aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json)
SELECT e.seq, e.id, e.created_at, e.created_at + interval '1 minute', 10, e.state = 1, e.namespace, e.event_type,
       e.aggregate_type, e.aggregate_id, k.topic, 'max_attempts', e.last_error, e.payload_json
  FROM public.outbox_events e LEFT JOIN public.outbox_known k ON k.event_type = e.event_type
 WHERE e.attempt_count = 10 ORDER BY e.seq;
INSERT INTO public.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason)
SELECT gen_random_uuid(), 'discard', d.event_id, d.id, 'ada', 'the order was written again'
  FROM public.outbox_dlq d WHERE d.created_at < now() - interval '10 days';
UPDATE public.outbox_events e SET state = 7
  FROM public.outbox_dlq d
 WHERE e.id = d.event_id AND d.created_at < now() - interval '10 days';

-- Attempts that failed: ten of each dead event, three of those that are tried again, and one of 1 in 200 that were
-- published in the end.
INSERT INTO public.outbox_attempts (event_id, number, at, relay, class, topic, error)
SELECT e.id, n, e.created_at + n * interval '5 s', r.id, CASE WHEN e.state = 6 THEN 'topic_fault' ELSE 'rejected' END,
       coalesce(k.topic, 'audits'), coalesce(e.last_error, 'no answer within 10s')
  FROM public.outbox_events e CROSS JOIN public.outbox_relays r
  LEFT JOIN public.outbox_known k ON k.event_type = e.event_type
 CROSS JOIN LATERAL generate_series(1, greatest(e.attempt_count, 1)) n
 WHERE e.attempt_count > 0 OR e.state = 6 AND e.seq % 200 = 0;

-- Two relays have written down the 72 hours of twenty topics.
INSERT INTO public.outbox_minutes (minute, topic, relay, arrived, published, rejected, terminal, topic_fault, unknown,
    died, latencies, pending, oldest)
SELECT date_trunc('minute', now()) - m * interval '1 minute', k.topic, r.id, 60, 58, m % 3, 0, m % 7 / 6, 0, 0,
       ARRAY[0, 1, 9, 20, 20, 5, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]::bigint[], m % 50, m % 50
  FROM generate_series(1, 72 * 60 - 1) m CROSS JOIN public.outbox_known k
 CROSS JOIN (SELECT gen_random_uuid() AS id FROM generate_series(1, 2)) r;

-- Roles of every part: some that every server has, whose grants go with this database.
SELECT public.outbox_grant('producer', 'pg_checkpoint'), public.outbox_grant('relay', 'pg_signal_backend'),
       public.outbox_grant('janitor', 'pg_database_owner'), public.outbox_grant('viewer', 'pg_monitor'),
       public.outbox_grant('operator', 'pg_read_all_settings');
