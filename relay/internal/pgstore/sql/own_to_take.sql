-- $1 relay, $2 its token. Taken before lanes are acquired: whoever ends the relay comes before or after that, and a
-- settle or a beat of the relay is not waited for.
SELECT FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL
   FOR NO KEY UPDATE
