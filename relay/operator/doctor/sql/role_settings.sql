-- $1 roles. What was set for them, or for everybody in this database.
SELECT coalesce(r.rolname::text, ''), s.setdatabase <> 0, current_database()::text, pg_catalog.split_part(c, '=', 1),
       pg_catalog.split_part(c, '=', 2)
  FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
 CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) c
 WHERE (s.setdatabase = 0 OR s.setdatabase = (
        SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))
   AND (s.setrole = 0 OR r.rolname = ANY ($1::text[]))
 ORDER BY 1, 2, 4
