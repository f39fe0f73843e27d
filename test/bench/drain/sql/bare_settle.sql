UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp() WHERE id = ANY($1)
