-- Who may still look at old versions of rows, so that no vacuum takes them away: sessions, prepared transactions and
-- replication slots, the oldest first, at most $1. Since how many transactions everybody may see, and whose it is; the
-- state of a session and since when its transaction is open only who may read its statistics. A worker of autovacuum
-- has no user, and holds nothing back.
SELECT h.kind, h.pid, h.name, h.role, h.application, h.state, h.since, h.transactions
  FROM (SELECT 'session' AS kind, a.pid, '' AS name, coalesce(a.usename::text, '') AS role,
               coalesce(a.application_name, '') AS application, coalesce(a.state, '') AS state, a.xact_start AS since,
               age(a.backend_xmin)::bigint AS transactions
          FROM pg_catalog.pg_stat_activity a
         WHERE a.backend_xmin IS NOT NULL AND a.usesysid IS NOT NULL AND a.pid <> pg_catalog.pg_backend_pid()
           AND coalesce(a.datname = current_database(), true)
        UNION ALL
        SELECT 'prepared', 0, p.gid, p.owner::text, '', '', p.prepared, age(p.transaction)::bigint
          FROM pg_catalog.pg_prepared_xacts p WHERE p.database = current_database()
        UNION ALL
        SELECT 'slot', coalesce(s.active_pid, 0), s.slot_name::text, '', '',
               CASE WHEN s.active THEN 'active' ELSE 'idle' END, NULL, age(s.xmin)::bigint
          FROM pg_catalog.pg_replication_slots s WHERE s.xmin IS NOT NULL) h
 ORDER BY h.transactions DESC, h.since NULLS LAST, h.pid LIMIT $1::integer
