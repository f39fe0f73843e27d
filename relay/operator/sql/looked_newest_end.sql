-- How many events there are between the ids $1 and $2, at most $3 from the newest on, and the last of these.
SELECT l.place, l.id::text
  FROM (SELECT row_number() OVER (ORDER BY e.id DESC) AS place, e.id FROM {schema}.outbox_events e
         WHERE e.id >= $1::text::uuid AND e.id < $2::text::uuid
         ORDER BY e.id DESC LIMIT (SELECT $3::integer)) l
 ORDER BY l.place DESC LIMIT 1
