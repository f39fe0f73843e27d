-- The limits of topics that stand.
SELECT topic, rate, actor, reason, since FROM {schema}.outbox_limits ORDER BY topic LIMIT (SELECT 20000)
