UPDATE bench.lease_events SET state = 6, published_at = clock_timestamp(), locked_by = NULL, locked_until = NULL
 WHERE id = ANY($1) AND locked_by = $2
