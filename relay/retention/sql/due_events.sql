-- $1 the cut-off, $2 in how many places to look, at how many numbers each, $3. Answers between how many numbers there
-- are events, at how many of these it looked, in how many places it found some; how many published and discarded ones
-- there would go, by the conditions of the statement that deletes them, and how many such would stay. Where there are
-- more numbers than it may look at, the places are spread over all of them: then it is for the caller to scale.
-- States: 6 published, 7 discarded.
WITH numbers AS MATERIALIZED (
    SELECT coalesce(min(low.seq), 1) AS low, coalesce(max(high.seq), 0) AS high
      FROM {schema}.outbox_lanes l
     CROSS JOIN LATERAL (SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane
                          ORDER BY e.seq LIMIT (SELECT 1)) low
     CROSS JOIN LATERAL (SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane
                          ORDER BY e.seq DESC LIMIT (SELECT 1)) high
), places AS MATERIALIZED (
    SELECT p.low, least(p.low + $3::bigint - 1, p.high) AS high
      FROM (SELECT n.low + i * greatest($3::bigint, (n.high - n.low + 1 - $3::bigint) / greatest($2::integer - 1, 1))
                   AS low, n.high
              FROM numbers n CROSS JOIN generate_series(0, $2::integer - 1) i) p
     WHERE p.low <= p.high
), looked AS MATERIALIZED (
    SELECT CASE e.state WHEN 6 THEN e.published_at < $1::timestamptz
                        WHEN 7 THEN e.created_at < $1::timestamptz AND NOT EXISTS (
                            SELECT FROM {schema}.outbox_actions a WHERE a.event_id = e.id
                                   AND a.verb IN ('discard', 'reissue')
                                   AND a.acted_at >= $1::timestamptz OFFSET 0)
                        ELSE false END
           AND NOT EXISTS (
            SELECT FROM {schema}.outbox_requests r
             WHERE r.event_id = e.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL
               AND r.failed_at IS NULL OFFSET 0) AS due, e.state, p.low AS place
      FROM places p CROSS JOIN {schema}.outbox_lanes l CROSS JOIN LATERAL (
        SELECT e.id, e.state, e.created_at, e.published_at FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq BETWEEN p.low AND p.high
         ORDER BY e.seq LIMIT (SELECT 9223372036854775807)) e
)
SELECT (SELECT n.high - n.low + 1 FROM numbers n), (SELECT coalesce(sum(p.high - p.low + 1), 0)::bigint FROM places p),
       count(DISTINCT o.place), count(*) FILTER (WHERE o.due AND o.state = 6),
       count(*) FILTER (WHERE o.due AND o.state = 7),
       count(*) FILTER (WHERE o.due IS NOT TRUE AND o.state IN (6, 7))
  FROM looked o
