CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_events_event_type ON {schema}.outbox_events (event_type, seq)
