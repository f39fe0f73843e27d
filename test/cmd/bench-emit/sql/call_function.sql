SELECT id::text FROM {schema}.outbox_emit(event_type => $1, aggregate_type => $2, aggregate_id => $3, data => $4)
