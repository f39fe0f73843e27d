-- The time of the server's start is the incarnation: as a number, because as text it depends on the session.
SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END, pg_is_in_recovery(),
       (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
  FROM {schema}.outbox_events_seq_seq
