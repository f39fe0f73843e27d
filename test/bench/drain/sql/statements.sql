SELECT calls, rows, total_exec_time, shared_blks_hit, wal_bytes::bigint,
       left(regexp_replace(regexp_replace(query, '--[^\n]*\n', '', 'g'), '\s+', ' ', 'g'), 110)
  FROM public.pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND userid = (SELECT usesysid FROM pg_user WHERE usename = current_user) ORDER BY total_exec_time DESC LIMIT 16
