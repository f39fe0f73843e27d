-- The events of the aggregate {type} and {aggregate}, by their index, at most {window}; those below the id {below}.
SELECT {columns}, 0 AS place
  FROM (SELECT {columns} FROM {schema}.outbox_events e
         WHERE e.aggregate_type = {type}::text AND e.aggregate_id = {aggregate}::text
         LIMIT (SELECT {window}::integer)) e
 WHERE e.id < {below}::text::uuid
