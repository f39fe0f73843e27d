SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = $1::text::regclass AND NOT i.indisprimary ORDER BY c.relname
