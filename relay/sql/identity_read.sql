-- Which server this is, and which one the outbox was last seen on. A standby has no timeline of its own to name.
-- The end of the log knows it; pg_control_checkpoint() would name the old one until the next checkpoint.
SELECT pg_is_in_recovery(), s.system_identifier,
       CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
            ELSE 0 END,
       clock_timestamp(), h.system_identifier, h.timeline, h.seen_at,
       NOT EXISTS (SELECT FROM {schema}.outbox_events)
  FROM pg_control_system() s LEFT JOIN {schema}.outbox_identity h ON true
