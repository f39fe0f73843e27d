DROP INDEX CONCURRENTLY IF EXISTS {schema}.outbox_events_event_type
