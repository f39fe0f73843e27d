-- Settings of the server on which promises rest, that are off.
SELECT s.name FROM pg_catalog.pg_settings s
 WHERE s.name IN ('fsync', 'full_page_writes', 'autovacuum', 'track_counts') AND s.setting = 'off' ORDER BY s.name
