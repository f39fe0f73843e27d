UPDATE bench.minimal_events SET published_at = clock_timestamp() WHERE seq = ANY($1)
