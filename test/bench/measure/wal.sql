WITH records AS MATERIALIZED (
    SELECT xid::text AS xid, record_length, fpi_length, block_ref,
           substring(block_ref FROM 'rel [0-9]+/([0-9]+)/')::oid AS database,
           substring(block_ref FROM 'rel [0-9]+/[0-9]+/([0-9]+)')::oid AS filenode
      FROM pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn)
), here AS (
    SELECT oid FROM pg_database WHERE datname = current_database()
), transactions AS ( -- not those of autovacuum, which come when they want and write into catalogs alone
    SELECT DISTINCT r.xid
      FROM records r JOIN pg_class c ON c.relfilenode = r.filenode AND c.oid >= 16384
     WHERE r.xid <> '0' AND r.database = (SELECT oid FROM here)
)
SELECT CASE WHEN r.database IS NULL THEN 'transactions' WHEN c.oid >= 16384 THEN c.relname
       ELSE 'catalog' END AS relation, count(*) AS records,
       sum(r.record_length)::bigint AS bytes, sum(r.fpi_length)::bigint AS page_images
  FROM records r LEFT JOIN pg_class c ON c.relfilenode = r.filenode AND r.database = (SELECT oid FROM here)
 WHERE r.database = (SELECT oid FROM here) OR r.xid IN (SELECT xid FROM transactions)
 GROUP BY 1 ORDER BY 1
