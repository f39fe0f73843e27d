-- $1 rows: dead, each in front of an aggregate of its own. Kind 4: dead and blocking.
WITH made AS (
    INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state)
    SELECT public.outbox_lane('default', 'thing', a), public.outbox_uuid7(), 'bulk_1', 'thing', a, '{}', 1
      FROM generate_series(1, $1::integer) i CROSS JOIN LATERAL (SELECT 'a' || i AS a) a
    RETURNING lane, seq, event_type, aggregate_type, aggregate_id
)
INSERT INTO public.outbox_held (lane, seq, kind, since, namespace, event_type, aggregate_type, aggregate_id)
SELECT lane, seq, 4, now(), 'default', event_type, aggregate_type, aggregate_id FROM made
