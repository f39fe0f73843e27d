INSERT INTO bench.bare (payload) VALUES ($1)
