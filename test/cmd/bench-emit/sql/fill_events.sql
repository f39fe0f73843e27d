WITH filled AS (
    INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, published_at)
    SELECT e.id, 'order_event_' || e.n % 8, 'account', a.id,
           ('{"version":1,"eventId":"' || e.id || '","filler":"' || encode(sha512(e.n::text::bytea), 'hex')
           || encode(sha512((-e.n)::text::bytea), 'hex') || '"}')::json, 6, now()
      FROM (SELECT n, {schema}.outbox_uuid7() AS id FROM generate_series(1, $1::int) n) e
      JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM bench.account) a
           ON a.place = e.n * 7919::bigint % $2::bigint
    RETURNING id, namespace, event_type, aggregate_id
)
INSERT INTO {schema}.outbox_dedupe (event_id, namespace, event_type, tenant_id, dedupe_key, content_hash)
SELECT id, namespace, event_type, '', aggregate_id || '/' || left(md5(id::text), 16), sha256(id::text::bytea)
  FROM filled
