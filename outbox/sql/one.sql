INSERT INTO {schema}.outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
    payload_json, headers)
VALUES ({schema}.outbox_lane($2::text, $4::text, $5::text), $1::text::uuid, $2::text, $3::text, $4::text, $5::text,
        $6::text, $7::text::json, $8::text::json)
RETURNING '1'
