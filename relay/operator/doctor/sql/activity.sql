-- $1 the schema, $2 from how many seconds on a transaction is old. Those that hold a snapshot or have written to the
-- events, the oldest first.
SELECT a.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8, w.writes
  FROM pg_catalog.pg_stat_activity a CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
         WHERE l.pid = a.pid AND l.locktype = 'relation' AND l.mode = 'RowExclusiveLock' AND l.granted
           AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
           AND c.relnamespace = $1::text::regnamespace
           AND pg_catalog.starts_with(c.relname, 'outbox_events')) AS writes) w
 WHERE a.datname = current_database() AND a.pid <> pg_catalog.pg_backend_pid() AND a.backend_type = 'client backend'
   AND a.xact_start < clock_timestamp() - $2::float8 * interval '1 second'
   AND (w.writes OR a.backend_xmin IS NOT NULL)
 ORDER BY a.xact_start LIMIT 20
