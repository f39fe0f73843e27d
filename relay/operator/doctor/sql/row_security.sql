-- $1 the schema, $2 roles. The tables of the outbox whose row security may hide rows from one of them: no policy lets
-- it see all.
SELECT c.relname::text, r.rolname::text
  FROM pg_catalog.pg_class c CROSS JOIN pg_catalog.pg_roles r
 WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p')
   AND pg_catalog.starts_with(c.relname, 'outbox_')
   AND c.relrowsecurity AND r.rolname = ANY ($2::text[]) AND NOT r.rolsuper AND NOT r.rolbypassrls
   AND (c.relforcerowsecurity OR NOT pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE'))
   AND NOT EXISTS (
       SELECT FROM pg_catalog.pg_policies p
        WHERE p.schemaname = (SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.oid = c.relnamespace)
          AND p.tablename = c.relname AND p.qual = 'true' AND p.cmd IN ('ALL', 'SELECT') AND p.permissive = 'PERMISSIVE'
          AND EXISTS (SELECT FROM pg_catalog.unnest(p.roles) n(name)
                       WHERE n.name = 'public' OR pg_catalog.pg_has_role(r.oid, n.name, 'MEMBER')))
 ORDER BY 1, 2
