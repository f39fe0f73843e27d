CREATE UNLOGGED TABLE bench.{template} AS
SELECT (row_number() OVER (ORDER BY seq) - 1)::integer AS n, id, created_at, namespace, event_type, aggregate_type,
       aggregate_id, payload_json
  FROM {schema}.outbox_events;
CREATE UNIQUE INDEX ON bench.{template} (n);
ANALYZE bench.{template}
