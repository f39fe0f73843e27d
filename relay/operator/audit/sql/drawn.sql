-- The last number that was drawn.
SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM {schema}.outbox_events_seq_seq s
