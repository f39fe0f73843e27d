-- A commit of our own that is flushed, and with it everything written before. The settings are local to this
-- transaction and are made here, because the role or the database may say otherwise and a pooler may not
-- pass on what a session asked for. A warning must arrive: it is how the server says that it did not wait
-- for its standby.
SELECT set_config('synchronous_commit',
              CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true),
       set_config('client_min_messages', 'warning', true),
       pg_logical_emit_message(true, 'posthaste', ''),
       {incarnation}
