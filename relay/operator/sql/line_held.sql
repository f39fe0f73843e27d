-- What an event may be behind: held events of its aggregate, $1 lane, $2 namespace, $3 and $4 type and id, below the
-- number $5: those that do not wait themselves, and the first of each event type, which waits with the others while
-- an operator has paused its type. A look steps from one event type to the next, at most 100, and takes the first $6
-- of each: a million may wait behind the head of a line. Kinds: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
WITH RECURSIVE types AS (
    (SELECT h.event_type, 1 AS place FROM {schema}.outbox_held h
      WHERE h.lane = $1::integer AND h.namespace = $2::text AND h.aggregate_type = $3::text
        AND h.aggregate_id = $4::text
      ORDER BY h.event_type LIMIT 1)
    UNION ALL
    SELECT n.event_type, t.place + 1 FROM types t CROSS JOIN LATERAL (
        SELECT h.event_type FROM {schema}.outbox_held h
         WHERE h.lane = $1::integer AND h.namespace = $2::text AND h.aggregate_type = $3::text
           AND h.aggregate_id = $4::text AND h.event_type > t.event_type
         ORDER BY h.event_type LIMIT 1) n
     WHERE t.place < 100
)
SELECT h.seq, h.kind, CASE WHEN h.due IS NOT NULL THEN greatest(least(h.due, '9999-12-31'), '0001-01-01') END,
       greatest(least(h.since, '9999-12-31'), '0001-01-01'), h.event_type, e.id::text, e.attempt_count,
       coalesce(e.last_error, ''),
       coalesce((SELECT d.topic FROM {schema}.outbox_dlq d WHERE d.event_id = e.id ORDER BY d.id DESC LIMIT 1), ''),
       coalesce(e.tenant_id, '')
  FROM types t CROSS JOIN LATERAL (
       SELECT h.lane, h.seq, h.kind, h.due, h.since, h.event_type, row_number() OVER (ORDER BY h.seq) AS place
         FROM {schema}.outbox_held h
        WHERE h.lane = $1::integer AND h.namespace = $2::text AND h.aggregate_type = $3::text
          AND h.aggregate_id = $4::text AND h.event_type = t.event_type AND h.seq < $5::bigint
        ORDER BY h.seq LIMIT (SELECT $6::integer)) h
 CROSS JOIN LATERAL (
       SELECT e.id, e.attempt_count, e.last_error, e.tenant_id FROM {schema}.outbox_events e
        WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
 WHERE h.kind <> 3 OR h.place = 1 ORDER BY h.seq
