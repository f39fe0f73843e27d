-- $1 the relay that asks, $2 how many at most, $3 that nobody's death is counted
SELECT {schema}.outbox_end_expired($1::uuid, $2::integer, $3::boolean)
