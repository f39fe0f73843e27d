-- $1 rows: parked for an hour, ten of each aggregate, of types that nobody knows. Kind 2: parked.
WITH made AS (
    INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state)
    SELECT public.outbox_lane('default', 'thing', a), public.outbox_uuid7(), 'nobody_' || i % 10, 'thing', a, '{}', 1
      FROM generate_series(1, $1::integer) i CROSS JOIN LATERAL (SELECT 'a' || i % ($1::integer / 10) AS a) a
    RETURNING lane, seq, event_type, aggregate_type, aggregate_id
)
INSERT INTO public.outbox_held (lane, seq, kind, since, namespace, event_type, aggregate_type, aggregate_id)
SELECT lane, seq, 2, now() - interval '1 hour', 'default', event_type, aggregate_type, aggregate_id FROM made
