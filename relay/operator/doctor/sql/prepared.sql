-- $1 from how many seconds on a prepared transaction is old.
SELECT p.gid, p.owner::text, extract(epoch FROM clock_timestamp() - p.prepared)::float8
  FROM pg_catalog.pg_prepared_xacts p
 WHERE p.database = current_database() AND p.prepared < clock_timestamp() - $1::float8 * interval '1 second'
 ORDER BY p.prepared LIMIT 20
