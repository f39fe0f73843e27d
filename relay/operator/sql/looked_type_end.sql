-- How many events there are of the type $1 below the number $2, at most $3 from the newest on, and the last of these.
SELECT l.place, l.seq::text
  FROM (SELECT row_number() OVER (ORDER BY e.seq DESC) AS place, e.seq FROM {schema}.outbox_events e
         WHERE e.event_type = $1::text AND e.seq < $2::bigint
         ORDER BY e.seq DESC LIMIT (SELECT $3::integer)) l
 ORDER BY l.place DESC LIMIT 1
