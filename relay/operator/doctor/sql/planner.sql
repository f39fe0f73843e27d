-- What this session's database or role has changed of the planner.
SELECT s.name, s.source, current_database()::text FROM pg_catalog.pg_settings s
 WHERE pg_catalog.starts_with(s.category, 'Query Tuning') AND s.source IN ('database', 'user', 'database user')
 ORDER BY s.name
