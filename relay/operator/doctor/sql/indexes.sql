-- $1 the schema. The indexes of the outbox: their table, whether they can be used, whether somebody makes them just
-- now, which columns they name anywhere, and whether they are partial or over an expression.
SELECT i.relname::text, t.relname::text, x.indisvalid AND x.indisready,
       EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index p WHERE p.index_relid = x.indexrelid),
       ARRAY(SELECT DISTINCT a.attname::text FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = x.indrelid AND a.attnum > 0
                AND (a.attnum = ANY (x.indkey::smallint[]) OR EXISTS (
                    SELECT FROM pg_catalog.pg_depend d
                     WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = x.indexrelid
                       AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = x.indrelid
                       AND d.refobjsubid = a.attnum))),
       x.indpred IS NOT NULL OR x.indexprs IS NOT NULL
  FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
  JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
 WHERE t.relnamespace = $1::text::regnamespace AND pg_catalog.starts_with(t.relname, 'outbox_')
 ORDER BY 2, 1
