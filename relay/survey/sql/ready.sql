-- $1 the limit, $2 and $3 event types and the topic of each. Ready events of each topic, of unknown types under '': how
-- many, and the age in seconds of the oldest that was found. At or below a lane's floor there are none. Above it are
-- also events that are settled: behind a transaction that is open for long, all that were published since. No index
-- tells them apart, so about three times the limit are looked at, at the most: from the low end of every lane a share
-- of its own, then on in the lanes that have more, and as many as at first from their high end, where the newest are.
-- What is ready in between is not seen. It goes on also where the shares are ready to the last: they may be of one
-- topic, and the oldest of another right behind them.
-- The limits are hidden from the planner, and the states stand outside of them: by statistics of a time when all was
-- settled it would expect no row that is ready, and read everything for them. States: 0 ready.
WITH lanes AS MATERIALIZED (
    SELECT l.lane, l.floor, $1::bigint / count(*) OVER () + 1 AS share
      FROM {schema}.outbox_lane_status l WHERE l.layout = 1
), low AS MATERIALIZED (
    SELECT l.lane, e.seq, e.state, e.created_at, e.event_type
      FROM lanes l CROSS JOIN LATERAL (
        SELECT e.seq, e.state, e.created_at, e.event_type FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq > l.floor ORDER BY e.seq LIMIT l.share) e
), longer AS MATERIALIZED (
    SELECT l.lane, l.share, max(w.seq) AS seq
      FROM lanes l JOIN low w ON w.lane = l.lane GROUP BY l.lane, l.share HAVING count(*) = l.share
), found AS (
    SELECT lane, seq, created_at, event_type FROM low WHERE state = 0
    UNION
    SELECT o.lane, o.seq, o.created_at, o.event_type FROM (
        SELECT l.lane, e.seq, e.state, e.created_at, e.event_type
          FROM longer l CROSS JOIN LATERAL (
            SELECT e.seq, e.state, e.created_at, e.event_type FROM {schema}.outbox_events e
             WHERE e.lane = l.lane AND e.seq > l.seq ORDER BY e.seq LIMIT (SELECT $1::bigint)) e
         LIMIT (SELECT $1::bigint)) o
     WHERE o.state = 0
    UNION
    SELECT l.lane, e.seq, e.created_at, e.event_type
      FROM longer l CROSS JOIN LATERAL (
        SELECT e.seq, e.state, e.created_at, e.event_type FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq > l.seq ORDER BY e.seq DESC LIMIT l.share) e
     WHERE e.state = 0
)
SELECT coalesce(t.topic, ''), count(*),
       extract(epoch FROM clock_timestamp() - min(f.created_at) FILTER (WHERE isfinite(f.created_at)))::float8
  FROM found f LEFT JOIN unnest($2::text[], $3::text[]) t(event_type, topic) ON t.event_type = f.event_type
 GROUP BY 1
