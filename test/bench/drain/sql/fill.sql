INSERT INTO {table} (lane, id, created_at, namespace, event_type, aggregate_type, aggregate_id, payload_json)
SELECT {schema}.outbox_lane(namespace, aggregate_type, aggregate_id), id, created_at, namespace, event_type,
       aggregate_type, aggregate_id, payload_json
  FROM bench.{template} WHERE n >= {from} AND n < {from} + {events} ORDER BY n
