-- The number of the event of the letter in place $3 of those above $1 and up to $2; no row: there are fewer.
SELECT d.event_seq
  FROM {schema}.outbox_dlq d
 WHERE d.event_seq > $1::bigint AND d.event_seq <= $2::bigint
 ORDER BY d.event_seq OFFSET $3::bigint - 1 LIMIT 1
