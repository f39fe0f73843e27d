-- Looks at what one example left behind, from the outside: prints every check that does not hold, and
-- nothing where all do. The schema must have been empty before the example ran.
--
--   psql -X -v schema=NAME -f examples/sql/check.sql "$DATABASE_URL"
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\pset format unaligned
-- All examples send the same document; this is its SHA-256, so equal here means equal in every language.
\set document 622da65bb1dc2915624b92e33b97effd4bed6d8d21a762543682c3bb0522b904

WITH stored AS (
    SELECT e.*, payload_json::text AS payload, (payload_json -> 'data')::text AS data,
           (SELECT string_agg(key, ',') FROM json_object_keys(payload_json) AS key) AS keys
      FROM :"schema".outbox_events e
), checks (what, holds) AS (VALUES
    ('three events are stored', (SELECT count(*) = 3 FROM stored)),
    ('three orders are stored, each with its event',
        (SELECT count(*) = 3 FROM :"schema".example_orders o JOIN stored s ON s.aggregate_id = o.id)),
    ('of what was rolled back, nothing is stored', NOT EXISTS (
        SELECT aggregate_id FROM stored WHERE aggregate_id LIKE '%rolled-back'
        UNION ALL SELECT id FROM :"schema".example_orders WHERE id LIKE '%rolled-back')),
    ('the envelope has its names and no others',
        (SELECT bool_and(keys IN ('version,eventId,occurredAt,data', 'version,eventId,occurredAt,actor,data'))
        FROM stored)),
    ('eventId is the id of the row', (SELECT bool_and(payload_json ->> 'eventId' = id::text) FROM stored)),
    ('version is a number',
        (SELECT bool_and(json_typeof(payload_json -> 'version') = 'number' AND payload_json ->> 'version' = '1')
        FROM stored)),
    ('occurredAt is UTC with microseconds',
        (SELECT bool_and(payload_json ->> 'occurredAt' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$') FROM stored)),
    ('the id is a UUIDv7 of this hour', (SELECT bool_and(substr(id::text, 15, 1) = '7' AND now() - to_timestamp(
        ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) BETWEEN '-1 minute' AND '1 hour')
        FROM stored)),
    ('data is what was sent, byte for byte',
        (SELECT bool_and(encode(sha256(convert_to(data, 'UTF8')), 'hex') = :'document') FROM stored)),
    ('one event has an actor', (SELECT count(*) = 1 FROM stored WHERE payload_json -> 'actor' ->> 'name' = 'Zoë'
        AND payload_json -> 'actor' ->> 'id' = '7')),
    ('one event has a header', (SELECT count(*) = 1 FROM stored WHERE headers ->> 'traceparent' LIKE '00-4bf9%')),
    ('one event has a tenant, which owns its key',
        (SELECT count(*) = 1 FROM stored WHERE tenant_id = 'acme' AND starts_with(dedupe_key, 'acme/'))),
    ('new events are ready, due and without attempts',
        (SELECT bool_and(state = 0 AND attempt_count = 0 AND published_at IS NULL) FROM stored)
        AND NOT EXISTS (SELECT FROM :"schema".outbox_held)),
    ('every event is in the lane of its aggregate',
        (SELECT bool_and(lane = :"schema".outbox_lane(namespace, aggregate_type, aggregate_id)) FROM stored)),
    ('two dedupe keys stand for their events',
        (SELECT count(*) = 2 FROM stored s JOIN :"schema".outbox_dedupe d ON d.event_id = s.id
        AND d.dedupe_key = s.dedupe_key)),
    -- What the Go package hashes in contentHash. A key used from one language must be known in the other.
    ('the content hash is that of type, id and data', (SELECT bool_and(d.content_hash = sha256(convert_to(
        s.aggregate_type || E'\n' || s.aggregate_id || E'\n' || s.data, 'UTF8'))) FROM :"schema".outbox_dedupe d
        JOIN stored s ON s.id = d.event_id))
)
SELECT what FROM checks WHERE holds IS NOT TRUE;

-- One event with fixed content, and the hash that every implementation must find for it.
\set known_hash 510dc9756dfae8e384634754463dbe20e9975f87433708b1643a106fb96bfc56
BEGIN;
SELECT id AS vector FROM :"schema".outbox_emit('order_created', 'order', '1001',
    '{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \"[1:2]\" \u00e9"}',
        dedupe_key => 'vector') \gset
SELECT 'the content hash of a known event is the known one' FROM :"schema".outbox_dedupe
 WHERE event_id = :'vector' AND encode(content_hash, 'hex') <> :'known_hash';
ROLLBACK;
