-- $1 how many, $2 aggregates.
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
SELECT public.outbox_lane('default', 'thing', 'thing-' || e.n % $2), e.id, 'thing_moved', 'thing', 'thing-' || e.n % $2,
       ('{"version":1,"eventId":"' || e.id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"filler":"'
    || repeat('x', 130) || '"}}')::json
  FROM (SELECT public.outbox_uuid7() AS id, n FROM generate_series(1, $1::integer) n OFFSET 0) e
