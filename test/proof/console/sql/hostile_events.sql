-- Events whose fields are texts of others: $1 is an array of objects. Most are dead and have their letter; each that is
-- told so is in another state.
WITH texts AS (
    SELECT t, n::integer AS n FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY v(t, n)
), made AS (
    INSERT INTO {schema}.outbox_events (lane, id, created_at, published_at, attempt_count, state, namespace, event_type,
        aggregate_type, aggregate_id, tenant_id, dedupe_key, payload_json, headers, last_error)
    SELECT {schema}.outbox_lane(t->>'namespace', t->>'aggregate_type', t->>'aggregate_id'), (t->>'id')::uuid,
           now() - n * interval '7 seconds', CASE WHEN t->>'state' = '6' THEN now() END, n % 4, (t->>'state')::smallint,
           t->>'namespace', t->>'event_type', t->>'aggregate_type', t->>'aggregate_id', t->>'tenant_id',
           t->>'dedupe_key', (t->>'payload')::json, (t->>'headers')::json, t->>'last_error'
      FROM texts ORDER BY n
    RETURNING *
), held AS (
    INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
    SELECT m.lane, m.seq, (t->>'kind')::smallint, now() + interval '1 hour', m.namespace, m.event_type,
           m.aggregate_type, m.aggregate_id
      FROM made m JOIN texts ON (t->>'id')::uuid = m.id WHERE m.state = 1
), letters AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
        dedupe_key, event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, headers)
    SELECT m.seq, m.id, m.created_at, 5, m.state = 1, m.namespace, m.tenant_id, m.dedupe_key, m.event_type,
           m.aggregate_type, m.aggregate_id, t->>'topic', 'rejected', t->>'error_detail', m.payload_json, m.headers
      FROM made m JOIN texts ON (t->>'id')::uuid = m.id WHERE m.state = 5 OR t->>'kind' = '4'
)
INSERT INTO {schema}.outbox_attempts (event_id, number, at, relay, class, topic, error)
SELECT m.id, g.number, now() - g.number * interval '1 minute', (t->>'relay_id')::uuid, 'rejected', t->>'topic',
       t->>'attempt_error'
  FROM made m JOIN texts ON (t->>'id')::uuid = m.id CROSS JOIN generate_series(1, 2) g(number)
