-- The events of the aggregate $1 and $2 in their order: those that are open, the first $4 of them, and the newest $3.
-- Its index has no order, so $5 of its events are looked at as they come. Where there are more, also those among the
-- newest $5 of its lanes; what is held is found by its own index in any case, the first $4 of each type. The first
-- column is how many that are published or discarded were seen, the last how many open ones. States: 1 held,
-- 6 published, 7 discarded.
WITH RECURSIVE sampled AS MATERIALIZED (
    SELECT e.lane, e.seq, e.state, e.namespace FROM {schema}.outbox_events e
     WHERE e.aggregate_type = $1::text AND e.aggregate_id = $2::text LIMIT (SELECT $5::integer)
), lines AS MATERIALIZED (
    SELECT DISTINCT e.lane, e.namespace FROM sampled e LIMIT (SELECT 100)
), latest AS MATERIALIZED (
    SELECT e.lane, e.seq, e.state
      FROM (SELECT DISTINCT l.lane FROM lines l WHERE (SELECT count(*) FROM sampled) >= $5::integer) l
     CROSS JOIN LATERAL (
           SELECT e.lane, e.seq, e.state, e.aggregate_type, e.aggregate_id
             FROM {schema}.outbox_events e WHERE e.lane = l.lane
            ORDER BY e.seq DESC LIMIT (SELECT $5::integer)) e
     WHERE e.aggregate_type = $1::text AND e.aggregate_id = $2::text
), types AS (
    SELECT l.lane, l.namespace, n.event_type, 1 AS place FROM lines l CROSS JOIN LATERAL (
        SELECT h.event_type FROM {schema}.outbox_held h
         WHERE h.lane = l.lane AND h.namespace = l.namespace AND h.aggregate_type = $1::text
           AND h.aggregate_id = $2::text
         ORDER BY h.event_type LIMIT 1) n
    UNION ALL
    SELECT t.lane, t.namespace, n.event_type, t.place + 1 FROM types t CROSS JOIN LATERAL (
        SELECT h.event_type FROM {schema}.outbox_held h
         WHERE h.lane = t.lane AND h.namespace = t.namespace AND h.aggregate_type = $1::text
           AND h.aggregate_id = $2::text AND h.event_type > t.event_type
         ORDER BY h.event_type LIMIT 1) n
     WHERE t.place < 100
), held AS MATERIALIZED (
    SELECT h.lane, h.seq FROM types t CROSS JOIN LATERAL (
        SELECT h.lane, h.seq FROM {schema}.outbox_held h
         WHERE h.lane = t.lane AND h.namespace = t.namespace AND h.aggregate_type = $1::text
           AND h.aggregate_id = $2::text AND h.event_type = t.event_type
         ORDER BY h.seq LIMIT (SELECT $4::integer)) h
), seen AS MATERIALIZED (
    SELECT e.lane, e.seq, e.state FROM sampled e
    UNION
    SELECT e.lane, e.seq, e.state FROM latest e
    UNION
    SELECT e.lane, e.seq, e.state FROM held h CROSS JOIN LATERAL (
        SELECT e.lane, e.seq, e.state FROM {schema}.outbox_events e WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
), shown AS MATERIALIZED (
    (SELECT s.lane, s.seq FROM seen s ORDER BY s.seq DESC LIMIT (SELECT $3::integer))
    UNION
    (SELECT s.lane, s.seq FROM seen s WHERE s.state NOT IN (6, 7) ORDER BY s.seq LIMIT (SELECT $4::integer))
), counts AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE e.state IN (6, 7)) AS closed,
           count(*) FILTER (WHERE e.state NOT IN (1, 6, 7)) + (
               SELECT count(*) FROM (
                   SELECT FROM lines l CROSS JOIN LATERAL (
                       SELECT FROM {schema}.outbox_held h
                        WHERE h.lane = l.lane AND h.namespace = l.namespace AND h.aggregate_type = $1::text
                          AND h.aggregate_id = $2::text LIMIT (SELECT $5::integer)) h
                    LIMIT (SELECT $5::integer)) h) AS opened
      FROM seen e
)
SELECT c.closed, e.id::text, e.seq, e.lane, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.tenant_id, ''), coalesce(h.kind, e.state), greatest(least(e.created_at, '9999-12-31'), '0001-01-01'),
       CASE WHEN isfinite(e.published_at) THEN e.published_at END, CASE WHEN isfinite(h.since) THEN h.since END,
       CASE WHEN h.due IS NOT NULL THEN greatest(least(h.due, '9999-12-31'), '0001-01-01') END,
       e.attempt_count, coalesce(e.last_error, ''), EXISTS (
           SELECT FROM {schema}.outbox_actions a WHERE a.event_id = e.id AND a.verb = 'erase' OFFSET 0),
       NULL, NULL, NULL, c.opened
  FROM counts c CROSS JOIN shown s
 CROSS JOIN LATERAL (
       SELECT {columns} FROM {schema}.outbox_events e WHERE e.lane = s.lane AND e.seq = s.seq OFFSET 0) e
  LEFT JOIN LATERAL (
       SELECT h.kind, h.since, h.due FROM {schema}.outbox_held h
        WHERE e.state = 1 AND h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
 ORDER BY e.seq
