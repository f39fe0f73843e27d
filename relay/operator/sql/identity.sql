-- On which server the outbox was last seen, and which one this is. A standby has no timeline of its own to name.
SELECT h.system_identifier = s.system_identifier, h.timeline,
       CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
            ELSE h.timeline END, h.seen_at, pg_is_in_recovery()
  FROM pg_control_system() s CROSS JOIN {schema}.outbox_identity h
