-- What is ready before an event: $1 its lane, $2 the lane's floor, $3 its number, $4 namespace, $5 and $6 type and id
-- of its aggregate; $7 how many numbers to look at: so many from the floor up, and so many from it down. Behind a
-- transaction that is open for long, all that is above the floor may be published. How many of them were looked at, how
-- many are ready, since when the oldest of those, the first of them, and the types of the ready ones of the same
-- aggregate. State: 0 ready.
SELECT count(*), count(*) FILTER (WHERE e.state = 0),
       min(e.created_at) FILTER (WHERE e.state = 0 AND isfinite(e.created_at)), min(e.seq) FILTER (WHERE e.state = 0),
       coalesce(array_agg(DISTINCT e.event_type) FILTER (WHERE e.state = 0 AND e.namespace = $4::text
           AND e.aggregate_type = $5::text AND e.aggregate_id = $6::text), '{}')
  FROM ((SELECT e.seq, e.state, e.created_at, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id
           FROM {schema}.outbox_events e
          WHERE e.lane = $1::integer AND e.seq > $2::bigint AND e.seq < $3::bigint
          ORDER BY e.seq LIMIT (SELECT $7::integer))
        UNION
        (SELECT e.seq, e.state, e.created_at, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id
           FROM {schema}.outbox_events e
          WHERE e.lane = $1::integer AND e.seq > $2::bigint AND e.seq < $3::bigint
          ORDER BY e.seq DESC LIMIT (SELECT $7::integer))) e
