SELECT id, known_types FROM {schema}.outbox_relays WHERE alive_until >= clock_timestamp() ORDER BY id
