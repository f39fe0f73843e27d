WITH inserted AS (
    INSERT INTO {schema}.outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        payload_json, headers)
    SELECT {schema}.outbox_lane(g.namespace, g.aggregate_type, g.aggregate_id), g.id, g.namespace, g.event_type,
           g.aggregate_type, g.aggregate_id, g.tenant_id, g.payload, g.headers
      FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::json[], $8::json[])
           AS g(id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers)
    RETURNING 1
)
SELECT count(*)::text FROM inserted
