-- The events with the ids {ids}, a look into the index for each, which OFFSET keeps it; those below the id {below}.
SELECT {columns}, 0 AS place
  FROM (SELECT DISTINCT u.id FROM unnest({ids}::text[]::uuid[]) u(id)) wanted CROSS JOIN LATERAL (
       SELECT e.* FROM (SELECT {columns} FROM {schema}.outbox_events e WHERE e.id = wanted.id OFFSET 0) e) e
 WHERE e.id < {below}::text::uuid
