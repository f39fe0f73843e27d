-- The number of the held event in place $3 of those above $1 and up to $2, in all lanes; no row: there are fewer.
SELECT h.seq
  FROM {schema}.outbox_lanes l
 CROSS JOIN LATERAL (
       SELECT h.seq FROM {schema}.outbox_held h
        WHERE h.lane = l.lane AND h.seq > $1::bigint AND h.seq <= $2::bigint
        ORDER BY h.seq LIMIT (SELECT $3::bigint)) h
 ORDER BY h.seq OFFSET $3::bigint - 1 LIMIT 1
