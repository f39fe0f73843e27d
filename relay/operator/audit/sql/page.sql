-- Events from the id $1 on and below the id $2, in the order of their ids, at most $3.
SELECT e.id::text, e.seq, e.event_type, e.state, e.published_at
  FROM {schema}.outbox_events e
 WHERE e.id >= $1::text::uuid AND e.id < $2::text::uuid
 ORDER BY e.id LIMIT (SELECT $3::integer)
