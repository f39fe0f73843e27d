-- The barrier, where there can be one: a standby writes nothing. See barrier.sql.
SELECT set_config('synchronous_commit',
              CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
       set_config('client_min_messages', 'warning', true),
       CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'posthaste', '') END
