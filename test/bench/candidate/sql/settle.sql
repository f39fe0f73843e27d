-- $1 relay, $2 token, $3 the lanes of the batch, $4 and $5 lane and number of every event, $6 and $7 the least and the
-- greatest number.
WITH own AS MATERIALIZED (
    SELECT id FROM {schema}.outbox_relays
     WHERE id = $1::uuid AND token = $2::uuid AND ended_at IS NULL AND lanes @> $3::smallint[] FOR KEY SHARE
), settled AS (
    UPDATE {schema}.outbox_events e SET state = 6, published_at = clock_timestamp()
      FROM unnest($4::smallint[], $5::bigint[]) s(lane, seq)
     WHERE e.lane = s.lane AND e.seq = s.seq AND e.seq BETWEEN $6::bigint AND $7::bigint AND e.state = 0
       AND EXISTS (SELECT FROM own)
    RETURNING 1
)
SELECT count(*) FROM settled
