-- The events before and after the event $1 among those of its aggregate and namespace, by number: ids and numbers, null
-- where there is none; and whether the aggregate has so many, $2, that not all of them were looked at. Its index has no
-- order, so up to $2 of them are read as they come. Of a larger one those are looked for that are near: in its lane, $2
-- numbers to each side, by the primary key, which ends at the first that is found.
WITH self AS MATERIALIZED (
    SELECT e.lane, e.seq, e.namespace, e.aggregate_type, e.aggregate_id
      FROM {schema}.outbox_events e WHERE e.id = $1::text::uuid ORDER BY e.seq LIMIT 1
), own AS MATERIALIZED (
    SELECT n.id, n.seq, n.namespace FROM self s CROSS JOIN LATERAL (
        SELECT e.id, e.seq, e.namespace FROM {schema}.outbox_events e
         WHERE e.aggregate_type = s.aggregate_type AND e.aggregate_id = s.aggregate_id
         LIMIT (SELECT $2::integer)) n
), counted AS MATERIALIZED (
    SELECT count(*) >= $2::integer AS many FROM own
)
SELECT c.many, b.id::text, b.seq, a.id::text, a.seq
  FROM self s CROSS JOIN counted c
  LEFT JOIN LATERAL (
       (SELECT n.id, n.seq FROM own n
         WHERE NOT c.many AND n.namespace = s.namespace AND n.seq < s.seq ORDER BY n.seq DESC LIMIT 1)
       UNION ALL
       (SELECT e.id, e.seq
          FROM (SELECT e.id, e.seq, e.namespace, e.aggregate_type, e.aggregate_id FROM {schema}.outbox_events e
                 WHERE c.many AND e.lane = s.lane AND e.seq < s.seq
                 ORDER BY e.seq DESC LIMIT (SELECT $2::integer)) e
         WHERE e.namespace = s.namespace AND e.aggregate_type = s.aggregate_type AND e.aggregate_id = s.aggregate_id
         ORDER BY e.seq DESC LIMIT 1)) b ON true
  LEFT JOIN LATERAL (
       (SELECT n.id, n.seq FROM own n
         WHERE NOT c.many AND n.namespace = s.namespace AND n.seq > s.seq ORDER BY n.seq LIMIT 1)
       UNION ALL
       (SELECT e.id, e.seq
          FROM (SELECT e.id, e.seq, e.namespace, e.aggregate_type, e.aggregate_id FROM {schema}.outbox_events e
                 WHERE c.many AND e.lane = s.lane AND e.seq > s.seq
                 ORDER BY e.seq LIMIT (SELECT $2::integer)) e
         WHERE e.namespace = s.namespace AND e.aggregate_type = s.aggregate_type AND e.aggregate_id = s.aggregate_id
         ORDER BY e.seq LIMIT 1)) a ON true
