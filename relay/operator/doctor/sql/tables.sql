-- $1 the schema. The tables of the outbox: whether they are logged, their settings, and their CHECK constraints.
SELECT c.relname::text, c.relpersistence = 'p', c.relkind = 'p', coalesce(c.reloptions, '{}'),
       ARRAY(SELECT k.conname::text FROM pg_catalog.pg_constraint k
              WHERE k.conrelid = c.oid AND k.contype = 'c' ORDER BY k.conname)
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p')
   AND pg_catalog.starts_with(c.relname, 'outbox_')
 ORDER BY 1
