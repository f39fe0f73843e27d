-- $1 the limit. Retrying, parked and waiting events: how many, at most the limit each, and the age in seconds of the
-- oldest of those. The lowest number of each lane stands for its oldest: a number is drawn soon after its event's
-- transaction has begun. States: 1 retrying, 2 parked, 3 waiting.
WITH held AS MATERIALIZED (
    SELECT k.kind, h.lane, h.seq
      FROM (VALUES (1::smallint), (2::smallint), (3::smallint)) k(kind) CROSS JOIN LATERAL (
        SELECT l.lane, h.seq FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
            SELECT h.seq FROM {schema}.outbox_held h
             WHERE h.lane = l.lane AND h.kind = k.kind ORDER BY h.since, h.seq LIMIT (SELECT $1::bigint)) h
         WHERE l.layout = 1 LIMIT (SELECT $1::bigint)) h
), oldest AS MATERIALIZED (
    SELECT f.kind, e.created_at
      FROM (SELECT h.kind, h.lane, min(h.seq) AS seq FROM held h GROUP BY h.kind, h.lane) f CROSS JOIN LATERAL (
        SELECT e.created_at FROM {schema}.outbox_events e WHERE e.lane = f.lane AND e.seq = f.seq OFFSET 0) e
     WHERE isfinite(e.created_at)
), ages AS (
    SELECT o.kind, extract(epoch FROM clock_timestamp() - min(o.created_at))::float8 AS age
      FROM oldest o GROUP BY o.kind
)
SELECT count(*) FILTER (WHERE h.kind = 1), (SELECT a.age FROM ages a WHERE a.kind = 1),
       count(*) FILTER (WHERE h.kind = 2), (SELECT a.age FROM ages a WHERE a.kind = 2),
       count(*) FILTER (WHERE h.kind = 3), (SELECT a.age FROM ages a WHERE a.kind = 3)
  FROM held h
