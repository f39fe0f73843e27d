-- Events of the aggregate {type} and {aggregate}, by their index, with numbers above {above} and up to {upto}.
SELECT {columns}, 0 AS place
  FROM (SELECT {columns} FROM {schema}.outbox_events e
         WHERE e.aggregate_type = {type}::text AND e.aggregate_id = {aggregate}::text OFFSET 0) e
 WHERE e.seq > {above}::bigint AND e.seq <= {upto}::bigint
