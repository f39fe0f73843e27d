-- $1 relay, $2 its token. Taken before lanes are given away: a settle that holds FOR KEY SHARE is waited for, and one
-- that comes later finds that the lane is gone. FOR NO KEY UPDATE would let it pass.
SELECT FROM {schema}.outbox_relays r WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR UPDATE
