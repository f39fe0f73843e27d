WITH inserted AS (
    INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        payload_json, headers)
    SELECT g.id, g.namespace, g.event_type, g.aggregate_type, g.aggregate_id, g.tenant_id, g.payload::json,
           g.headers::json
      FROM unnest($1::text::uuid[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[],
           $6::text::text[], $7::text::text[], $8::text::text[])
           WITH ORDINALITY
           AS g(id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers, ord)
     ORDER BY g.ord
    RETURNING 1
)
SELECT count(*)::text FROM inserted
