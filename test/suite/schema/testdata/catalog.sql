-- What PostgreSQL knows about the objects of one schema ($1), one line per object, in an order of its own.
WITH home AS (SELECT oid FROM pg_namespace WHERE nspname = $1),
relations AS (
    SELECT c.*, a.amname, format('%s %s', c.relkind, c.relname) AS title
      FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam
     WHERE c.relnamespace = (SELECT oid FROM home)
)
SELECT line FROM (
    SELECT format('relation %s: persistence=%s am=%s options=%s acl=%s rls=%s/%s identity=%s owner=%s comment=%s',
                  title, relpersistence, amname, reloptions, (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(relacl) x),
                  relrowsecurity, relforcerowsecurity, relreplident, relowner::regrole, obj_description(oid, 'pg_class')) AS line
      FROM relations
    UNION ALL
    SELECT format('column %s.%s: #%s %s collation=%s notnull=%s default=%s identity=%s generated=%s storage=%s/%s stats=%s options=%s acl=%s comment=%s',
                  r.title, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attnotnull,
                  pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, a.attstorage, a.attcompression, a.attstattarget, a.attoptions,
                  (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(a.attacl) x), col_description(r.oid, a.attnum))
      FROM relations r JOIN pg_attribute a ON a.attrelid = r.oid AND NOT a.attisdropped AND a.attnum > 0
      LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
    UNION ALL
    SELECT format('view %s: %s', title, pg_get_viewdef(oid)) FROM relations WHERE relkind = 'v'
    UNION ALL
    SELECT format('index %s: %s valid=%s ready=%s', title, pg_get_indexdef(oid), i.indisvalid, i.indisready)
      FROM relations JOIN pg_index i ON i.indexrelid = oid
    UNION ALL
    SELECT format('sequence %s: start=%s by=%s min=%s max=%s cache=%s cycle=%s owner=%s', title, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
                  (SELECT pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend
                    WHERE classid = 'pg_class'::regclass AND objid = oid AND deptype = 'i'))
      FROM relations JOIN pg_sequence s ON s.seqrelid = oid
    UNION ALL
    SELECT format('constraint %s.%s: %s validated=%s deferrable=%s/%s comment=%s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid),
                  c.convalidated, c.condeferrable, c.condeferred, obj_description(c.oid, 'pg_constraint'))
      FROM pg_constraint c WHERE c.connamespace = (SELECT oid FROM home)
    UNION ALL
    SELECT format('trigger %s: %s enabled=%s', r.title, pg_get_triggerdef(t.oid), t.tgenabled)
      FROM relations r JOIN pg_trigger t ON t.tgrelid = r.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT format('function %s: %s acl=%s owner=%s comment=%s', p.oid::regprocedure, pg_get_functiondef(p.oid),
                  (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(p.proacl) x), p.proowner::regrole, obj_description(p.oid, 'pg_proc'))
      FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM home)
    UNION ALL
    SELECT format('type %s', t.typname) FROM pg_type t WHERE t.typnamespace = (SELECT oid FROM home)
) lines
ORDER BY line COLLATE "C"
