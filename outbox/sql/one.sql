INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, payload_json,
    headers)
VALUES ($1::text::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text::json, $8::text::json)
RETURNING '1'
