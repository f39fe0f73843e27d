-- Relays that are, or were, at work here and are not a developer's: $1 is how the names of those begin.
SELECT r.name FROM {schema}.outbox_relays r WHERE NOT starts_with(r.name, $1::text) ORDER BY r.started_at DESC LIMIT 3
