-- Which server this is, and which one the outbox was last seen on, and how many seconds ago; and whether there is an
-- event at all. As a relay asks it.
SELECT s.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer,
       h.system_identifier, h.timeline, extract(epoch FROM clock_timestamp() - h.seen_at)::float8,
       (SELECT e.seq FROM {schema}.outbox_events e ORDER BY e.lane DESC, e.seq DESC LIMIT 1) IS NULL
  FROM pg_control_system() s JOIN {schema}.outbox_identity h ON true
