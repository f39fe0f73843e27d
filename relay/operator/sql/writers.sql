-- $1 the sequence with its schema. Transactions that have drawn a number and are open, the oldest first, at most 100:
-- those with the lock on the sequence that drawing takes (see fence_writers.sql of pgstore). When it began only some
-- roles may see: superusers, members of pg_read_all_stats, and the role that it is of. One that has ended since the
-- locks were read is idle by now.
WITH l AS MATERIALIZED (
    SELECT locktype, relation, database, mode, virtualtransaction, transactionid, pid FROM pg_locks WHERE granted
)
SELECT coalesce(r.pid, 0), coalesce(a.usename::text, p.owner::text, ''), coalesce(a.application_name, ''),
       coalesce(a.state, ''), coalesce(a.xact_start, p.prepared), coalesce(p.gid, '')
  FROM l r
  LEFT JOIN LATERAL (
       SELECT l.transactionid FROM l
        WHERE l.virtualtransaction = r.virtualtransaction AND l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock'
        ORDER BY age(l.transactionid) DESC LIMIT 1) t ON true
  LEFT JOIN pg_stat_activity a ON a.pid = r.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = t.transactionid AND r.pid IS NULL
 WHERE r.locktype = 'relation' AND r.relation = $1::text::regclass AND r.mode = 'RowExclusiveLock'
   AND r.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND a.state IS DISTINCT FROM 'idle'
 ORDER BY coalesce(a.xact_start, p.prepared) NULLS LAST, r.pid LIMIT 100
