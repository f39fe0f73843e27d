-- Which server this is, and which one the outbox was last seen on. A standby has no timeline of its own to name.
-- The end of the log knows it; pg_control_checkpoint() would name the old one until the next checkpoint. Whether there
-- is no event at all, an index says: the table may be all room that deleted ones have left.
SELECT pg_is_in_recovery(), s.system_identifier,
       CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
            ELSE 0 END,
       clock_timestamp(), h.system_identifier, h.timeline, h.seen_at,
       (SELECT e.seq FROM {schema}.outbox_events e ORDER BY e.lane DESC, e.seq DESC LIMIT 1) IS NULL
  FROM pg_control_system() s LEFT JOIN {schema}.outbox_identity h ON true
