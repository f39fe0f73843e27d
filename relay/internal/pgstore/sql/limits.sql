SELECT topic, rate, actor, reason, since FROM {schema}.outbox_limits ORDER BY topic
