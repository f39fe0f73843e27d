-- $1 the schema, $2 roles, $3 rights, $4 kinds, $5 objects and $6 columns, as many of each. Which of them these roles
-- have, be it by themselves, by a role whose member they are, or as everybody. The columns of a table that is not there
-- nobody may use.
SELECT w.place, CASE w.kind
           WHEN 'schema' THEN pg_catalog.has_schema_privilege(w.role, $1::text::regnamespace, w.privilege)
           WHEN 'function' THEN EXISTS (
               SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = $1::text::regnamespace AND p.proname = w.object)
               AND NOT EXISTS (
               SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = $1::text::regnamespace AND p.proname = w.object
                  AND NOT pg_catalog.has_function_privilege(w.role, p.oid, w.privilege))
           WHEN 'sequence' THEN coalesce(pg_catalog.has_sequence_privilege(w.role, c.oid, w.privilege), false)
           ELSE CASE WHEN w.column_name = ''
                THEN coalesce(pg_catalog.has_table_privilege(w.role, c.oid, w.privilege), false)
                ELSE coalesce((SELECT pg_catalog.has_column_privilege(w.role, c.oid, a.attnum, w.privilege)
                                 FROM pg_catalog.pg_attribute a
                                WHERE a.attrelid = c.oid AND a.attname = w.column_name
                                  AND NOT a.attisdropped), false) END
       END
  FROM unnest($2::text[]::name[], $3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY
       w(role, privilege, kind, object, column_name, place)
  LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = $1::text::regnamespace AND c.relname = w.object
   AND w.kind IN ('table', 'sequence')
 ORDER BY w.place
