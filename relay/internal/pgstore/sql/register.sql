-- $1 relay, $2 its token, $3 name, $4 version. Sent again after an unknown outcome it finds itself there. The first
-- beat comes in the same transaction: a relay without one counts as dead.
INSERT INTO {schema}.outbox_relays (id, token, name, version) VALUES ($1::uuid, $2::uuid, $3::text, $4::text)
ON CONFLICT (id) DO NOTHING
