-- What reading the ready index has cost so far: by statement, where the server counts statements, and by index.
SELECT coalesce((SELECT sum(s.calls) FROM public.pg_stat_statements s
                  WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND s.query LIKE '%pg_visible_in_snapshot%'), 0)::bigint,
       coalesce((SELECT sum(s.total_exec_time) FROM public.pg_stat_statements s
                  WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND s.query LIKE '%pg_visible_in_snapshot%'), 0)::float8,
       coalesce((SELECT sum(s.shared_blks_hit + s.shared_blks_read) FROM public.pg_stat_statements s
                  WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND s.query LIKE '%pg_visible_in_snapshot%'), 0)::bigint,
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'public.outbox_events'::regclass)
