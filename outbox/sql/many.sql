WITH inserted AS (
    INSERT INTO {schema}.outbox_events (lane, id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
        payload_json, headers)
    SELECT {schema}.outbox_lane(g.namespace, g.aggregate_type, g.aggregate_id), g.id::uuid, g.namespace, g.event_type,
           g.aggregate_type, g.aggregate_id, g.tenant_id, g.payload::json, g.headers::json
      FROM ROWS FROM (
               string_to_table($1::text, chr(30), ''), string_to_table($2::text, chr(30), ''),
               string_to_table($3::text, chr(30), ''), string_to_table($4::text, chr(30), ''),
               string_to_table($5::text, chr(30), ''), string_to_table($6::text, chr(30), ''),
               string_to_table($7::text, chr(30), ''), string_to_table($8::text, chr(30), ''))
           WITH ORDINALITY
           AS g(id, namespace, event_type, aggregate_type, aggregate_id, tenant_id, payload, headers, ord)
     ORDER BY g.ord
    RETURNING 1
)
SELECT count(*)::text FROM inserted
