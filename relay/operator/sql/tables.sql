-- $1 the schema. The tables of the outbox, each with its partitions where it has some: bytes of the table with what it
-- has beside it, and of its indexes; about how many rows, as the planner estimates them; old versions of rows that
-- nobody has taken away; how many rows were updated since statistics are kept, and how many of these in place (HOT);
-- when it was last vacuumed by itself and by hand. Nothing is counted: all of it the server knows.
WITH tables AS (
    SELECT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class c
     WHERE c.relnamespace = $1::text::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
       AND pg_catalog.starts_with(c.relname, 'outbox_')
), parts AS (
    SELECT t.relname, t.oid FROM tables t WHERE t.relkind = 'r'
    UNION ALL
    SELECT t.relname, p.relid FROM tables t CROSS JOIN LATERAL pg_catalog.pg_partition_tree(t.oid) p
     WHERE t.relkind = 'p' AND p.isleaf
)
SELECT p.relname::text, coalesce(sum(pg_catalog.pg_table_size(p.oid)), 0)::bigint,
       coalesce(sum(pg_catalog.pg_indexes_size(p.oid)), 0)::bigint,
       coalesce(sum(CASE WHEN c.relpages > 0 THEN c.reltuples::float8 / c.relpages * pg_catalog.pg_relation_size(p.oid)
                              / pg_catalog.current_setting('block_size')::integer
                         ELSE s.n_live_tup END), 0)::bigint,
       coalesce(sum(s.n_dead_tup), 0)::bigint, coalesce(sum(s.n_tup_upd), 0)::bigint,
       coalesce(sum(s.n_tup_hot_upd), 0)::bigint, max(s.last_autovacuum), max(s.last_vacuum)
  FROM parts p JOIN pg_catalog.pg_class c ON c.oid = p.oid
  LEFT JOIN pg_catalog.pg_stat_all_tables s ON s.relid = p.oid
 GROUP BY p.relname ORDER BY 2 DESC, 1
