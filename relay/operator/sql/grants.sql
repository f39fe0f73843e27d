-- $1 the schema. Every right that somebody was granted on the outbox there, but for the owners of the objects. No role:
-- everybody. A function that nobody has granted or revoked is everybody's.
WITH entry AS (
    SELECT a.grantee, a.privilege_type, CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind,
           c.relname AS object, '' AS column_name
      FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
     WHERE c.relnamespace = $1::text::regnamespace AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee, a.privilege_type, 'table', c.relname, t.attname
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid AND NOT t.attisdropped
     CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) a
     WHERE c.relnamespace = $1::text::regnamespace AND a.grantee <> c.relowner
    UNION
    SELECT a.grantee, a.privilege_type, 'function', p.proname, ''
      FROM pg_catalog.pg_proc p
     CROSS JOIN LATERAL pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
     WHERE p.pronamespace = $1::text::regnamespace AND a.grantee <> p.proowner
)
SELECT coalesce(r.rolname, ''), e.privilege_type, e.kind, e.object, e.column_name
  FROM entry e LEFT JOIN pg_catalog.pg_roles r ON r.oid = e.grantee
 WHERE pg_catalog.starts_with(e.object, 'outbox_') AND (r.rolname IS NOT NULL OR e.grantee = 0)
 UNION
SELECT coalesce(r.rolname, ''), a.privilege_type, 'schema', n.nspname, ''
  FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
 WHERE n.oid = $1::text::regnamespace AND a.grantee <> n.nspowner AND (r.rolname IS NOT NULL OR a.grantee = 0)
 ORDER BY 1, 4, 2, 5
