WITH keyed AS (
    INSERT INTO {schema}.outbox_dedupe AS d (namespace, event_type, tenant_id, dedupe_key, event_id, content_hash)
    VALUES ($2::text, $3::text, coalesce($6::text, ''), $7::text, $1::text::uuid, $8::text::bytea)
    ON CONFLICT ON CONSTRAINT outbox_dedupe_pkey DO UPDATE SET repeated = true
    RETURNING d.event_id, d.content_hash, d.repeated
), inserted AS (
    INSERT INTO {schema}.outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        dedupe_key, payload_json, headers)
    SELECT {schema}.outbox_lane($2::text, $4::text, $5::text), $1::text::uuid, $2::text, $3::text, $4::text, $5::text,
           $6::text, $7::text, $10::text::json, $11::text::json
      FROM keyed k WHERE NOT k.repeated
)
SELECT CASE WHEN NOT k.repeated THEN '+' WHEN $9::text::boolean OR k.content_hash = $8::text::bytea THEN '='
       ELSE '!' END || k.event_id
  FROM keyed k
