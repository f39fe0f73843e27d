-- $1 the sequence with its schema.
-- Who holds the lock on the sequence that drawing a number takes. Only granted exclusive locks: who waits
-- for another transaction has a lock on that one's id, not granted, under its own virtual id. The locks are
-- read once, because a view of the lock table that is joined to itself is two different moments.
WITH l AS MATERIALIZED (
    SELECT locktype, relation, database, mode, virtualtransaction, transactionid FROM pg_locks WHERE granted
)
SELECT r.virtualtransaction, coalesce(t.transactionid::text, ''), pg_snapshot_xmax(pg_current_snapshot())::text
  FROM l r LEFT JOIN l t ON t.virtualtransaction = r.virtualtransaction AND t.locktype = 'transactionid'
       AND t.mode = 'ExclusiveLock'
 WHERE r.locktype = 'relation' AND r.relation = $1::text::regclass AND r.mode = 'RowExclusiveLock'
   AND r.database = (SELECT oid FROM pg_database WHERE datname = current_database())
