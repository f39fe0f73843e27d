-- $1 relay, $2 its token. No row comes back when the relay was ended.
SELECT r.lanes FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL
