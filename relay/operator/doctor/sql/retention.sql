-- What retention last did: how many seconds ago it ran (null: never), and why it does nothing.
SELECT kind, extract(epoch FROM clock_timestamp() - ran_at)::float8, halted_at IS NOT NULL, halt_reason
  FROM {schema}.outbox_retention ORDER BY kind
