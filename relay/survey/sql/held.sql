-- $1 the limit, $2 and $3 event types and the topic of each. Retrying, parked and waiting events of each topic, of
-- unknown types under '': the kind, the topic, how many, at most the limit of each kind, and the age in seconds of the
-- oldest of those. The lowest number of each lane stands for its oldest: a number is drawn soon after its event's
-- transaction has begun. States: 1 retrying, 2 parked, 3 waiting.
WITH held AS MATERIALIZED (
    SELECT k.kind, h.lane, h.seq, coalesce(t.topic, '') AS topic
      FROM (VALUES (1::smallint), (2::smallint), (3::smallint)) k(kind) CROSS JOIN LATERAL (
        SELECT l.lane, h.seq, h.event_type FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
            SELECT h.seq, h.event_type FROM {schema}.outbox_held h
             WHERE h.lane = l.lane AND h.kind = k.kind ORDER BY h.since, h.seq LIMIT (SELECT $1::bigint)) h
         WHERE l.layout = 1 LIMIT (SELECT $1::bigint)) h
      LEFT JOIN unnest($2::text[], $3::text[]) t(event_type, topic) ON t.event_type = h.event_type
), oldest AS MATERIALIZED (
    SELECT f.kind, f.topic, e.created_at
      FROM (SELECT h.kind, h.topic, h.lane, min(h.seq) AS seq FROM held h GROUP BY h.kind, h.topic, h.lane) f
     CROSS JOIN LATERAL (
        SELECT e.created_at FROM {schema}.outbox_events e WHERE e.lane = f.lane AND e.seq = f.seq OFFSET 0) e
     WHERE isfinite(e.created_at)
)
SELECT h.kind, h.topic, h.events, (
           SELECT extract(epoch FROM clock_timestamp() - min(o.created_at))::float8 FROM oldest o
            WHERE o.kind = h.kind AND o.topic = h.topic)
  FROM (SELECT h.kind, h.topic, count(*) AS events FROM held h GROUP BY h.kind, h.topic) h
