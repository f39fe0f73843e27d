CREATE UNLOGGED TABLE bench.{template} AS
SELECT id, created_at, namespace, event_type, aggregate_type, aggregate_id, payload_json FROM {schema}.outbox_events
       ORDER BY seq
