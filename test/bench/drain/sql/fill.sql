SET session_replication_role = replica;
INSERT INTO {table} (id, created_at, namespace, event_type, aggregate_type, aggregate_id, payload_json)
SELECT id, created_at, namespace, event_type, aggregate_type, aggregate_id, payload_json FROM bench.{template}
       ORDER BY id OFFSET {from} LIMIT {events};
RESET session_replication_role
