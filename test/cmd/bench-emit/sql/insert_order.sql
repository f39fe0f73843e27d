INSERT INTO bench.orders (id, account_id, amount) VALUES ($1, $2, $3)
