SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END, pg_is_in_recovery(),
       {incarnation}
  FROM {schema}.outbox_events_seq_seq
