-- $1 the schema: whether the tables are there that tell whose outbox it is. An old schema has no relays yet.
SELECT coalesce(bool_or(c.relname = 'outbox_relays'), false), coalesce(bool_or(c.relname = 'outbox_events'), false)
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1::text AND c.relname IN ('outbox_relays', 'outbox_events') AND c.relkind IN ('r', 'p')
