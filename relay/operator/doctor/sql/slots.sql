-- $1 how many bytes of log one may keep. Replication slots that nobody uses, and that keep more, or old versions of
-- rows.
SELECT s.slot_name::text, s.slot_type, s.xmin IS NOT NULL,
       coalesce(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn), 0)::bigint
  FROM pg_catalog.pg_replication_slots s
 WHERE NOT s.active AND (s.xmin IS NOT NULL
    OR pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), s.restart_lsn) >= $1::bigint)
 ORDER BY 4 DESC LIMIT 20
