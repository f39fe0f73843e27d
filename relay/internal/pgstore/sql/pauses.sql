SELECT scope, name, actor, reason, since FROM {schema}.outbox_pauses ORDER BY scope, name
