-- $1 the schema. What is there: tables, views, functions and triggers, with whether a function has its search_path
-- pinned, if it is one that needs it, and how a trigger is enabled.
SELECT CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, c.relname::text, '', false
  FROM pg_catalog.pg_class c
 WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p', 'v')
   AND pg_catalog.starts_with(c.relname, 'outbox_')
 UNION ALL
SELECT 'function', p.proname::text, p.oid::regprocedure::text,
       l.lanname = 'plpgsql' AND NOT EXISTS (
           SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE pg_catalog.starts_with(s, 'search_path='))
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.pronamespace = $1::text::regnamespace AND pg_catalog.starts_with(p.proname, 'outbox_')
 UNION ALL
SELECT 'trigger', t.tgname::text, c.relname::text, t.tgenabled NOT IN ('O', 'A')
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = $1::text::regnamespace AND NOT t.tgisinternal
