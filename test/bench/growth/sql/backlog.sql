-- $1 rows: ready, of a thousand types of one topic; one of a thousand is of another topic.
INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
SELECT public.outbox_lane('default', 'thing', e.a), e.id, e.type, 'thing', e.a,
       ('{"version":1,"eventId":"' || e.id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{}}')::json
  FROM (
    SELECT CASE WHEN i % 1000 = 0 THEN 'slow' ELSE 'bulk_' || i % 1000 END AS type, 'a' || i % 100000 AS a,
           public.outbox_uuid7() AS id
      FROM generate_series(1, $1::integer) i OFFSET 0
  ) e
