-- The first number from $1 on that an event has, or that begins a range in which retention deleted; without one, null.
SELECT least(min((SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane AND e.seq >= $1::bigint
                   ORDER BY e.seq LIMIT (SELECT 1))),
             min((SELECT p.first_seq FROM {schema}.outbox_pruned p WHERE p.first_seq >= $1::bigint
                   ORDER BY p.first_seq LIMIT (SELECT 1))))
  FROM {schema}.outbox_lanes l
