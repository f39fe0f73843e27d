INSERT INTO {schema}.outbox_relays (id, token, lanes) VALUES ($1, $2, $3)
