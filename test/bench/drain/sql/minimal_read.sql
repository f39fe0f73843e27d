SELECT seq, payload FROM bench.minimal_events WHERE seq > $1 ORDER BY seq LIMIT $2
