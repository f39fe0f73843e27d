-- What retention has deleted since the beginning, how many seconds ago it last ran (null: never), and whether it
-- refused to.
SELECT kind, deleted, extract(epoch FROM clock_timestamp() - ran_at)::float8, halted_at IS NOT NULL
  FROM {schema}.outbox_retention ORDER BY kind
