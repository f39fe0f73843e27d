-- $1 the sequence with its schema. How many transactions are open that have drawn a number: they hold the lock on the
-- sequence that drawing takes until they end.
SELECT count(DISTINCT l.virtualtransaction) FROM pg_locks l
 WHERE l.granted AND l.locktype = 'relation' AND l.relation = $1::text::regclass AND l.mode = 'RowExclusiveLock'
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
