-- How the optional look-ups stand; $1 is the table, $2 the schema. Of the index by type: whether it is there, whether
-- it can be used, its size, and who builds it. Of the function by time: whether it is there.
SELECT i.indexrelid IS NOT NULL, coalesce(i.indisvalid, false), coalesce(pg_relation_size(i.indexrelid), 0),
       coalesce((SELECT p.pid FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid LIMIT 1), 0),
       EXISTS (SELECT FROM pg_proc f
                WHERE f.pronamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = $2::text)
                  AND f.proname = 'outbox_id_at')
  FROM (SELECT $1::text::regclass AS oid) t
  LEFT JOIN pg_index i ON i.indrelid = t.oid
       AND (SELECT c.relname FROM pg_class c WHERE c.oid = i.indexrelid) = 'outbox_events_event_type'
