-- Whether a developer's relay was here within the last day, or is: $1 is how its name begins.
SELECT EXISTS (SELECT FROM {schema}.outbox_relays r WHERE starts_with(r.name, $1::text))
