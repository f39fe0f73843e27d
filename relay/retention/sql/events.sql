-- Deletes published and discarded events: $1 the number behind which to begin, $2 the last one to come to, $3 the
-- cut-off, $4 how many events to look at. Answers how many it looked at and the number of the last; how many of them
-- were created before the cut-off, how many since then, and the number of the first of these; how many published and
-- how many discarded ones went; and the ranges of the numbers that went, between which something stays: their firsts,
-- their lasts, and how many went in each.
--
-- All lanes at once, by their numbers: events that were written together stand on the same pages. Lane by lane, every
-- page would be written once for each lane. Each lane has a look into the index of its own, and the limits are hidden
-- from the planner: it expects few rows, and reads nothing else.
-- When an event was discarded stands in the log of actions, which goes with the dead letter; without it the event's own
-- age counts. One that was created ahead of the clock is neither old nor young: that clock was wrong.
-- States: 6 published, 7 discarded.
WITH looked AS MATERIALIZED (
    SELECT e.* FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
        SELECT e.lane, e.seq, e.id, e.state, e.created_at, e.published_at FROM {schema}.outbox_events e
         WHERE e.lane = l.lane AND e.seq > $1::bigint AND e.seq <= $2::bigint
         ORDER BY e.seq LIMIT (SELECT $4::integer)) e
     ORDER BY e.seq LIMIT (SELECT $4::integer)
), due AS MATERIALIZED (
    SELECT o.lane, o.seq FROM looked o
     WHERE CASE o.state WHEN 6 THEN o.published_at < $3::timestamptz
                        WHEN 7 THEN o.created_at < $3::timestamptz AND NOT EXISTS (
                            SELECT FROM {schema}.outbox_actions a WHERE a.event_id = o.id
                                   AND a.verb IN ('discard', 'reissue')
                                   AND a.acted_at >= $3::timestamptz OFFSET 0)
                        ELSE false END
       AND NOT EXISTS ( -- one that shall be delivered again
        SELECT FROM {schema}.outbox_requests r
         WHERE r.event_id = o.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL OFFSET 0)
), gone AS ( -- the arrays are taken for small as well: joined, the planner may hash the whole table
    DELETE FROM {schema}.outbox_events e
     USING unnest(ARRAY(SELECT d.lane FROM due d), ARRAY(SELECT d.seq FROM due d)) AS k(lane, seq)
     WHERE e.lane = k.lane AND e.seq = k.seq AND e.seq > $1::bigint AND e.seq <= $2::bigint AND e.state IN (6, 7)
    RETURNING e.id, e.state, e.seq
), forgotten AS ( -- with what went wrong with them
    DELETE FROM {schema}.outbox_attempts a USING unnest(ARRAY(SELECT g.id FROM gone g)) AS k(id) WHERE a.event_id = k.id
), ranges AS MATERIALIZED (
    SELECT min(r.seq) AS first, max(r.seq) AS last, count(*) AS events
      FROM (SELECT o.seq, g.seq IS NOT NULL AS went,
                   count(*) FILTER (WHERE g.seq IS NULL) OVER (ORDER BY o.seq) AS stayed
              FROM looked o LEFT JOIN gone g ON g.seq = o.seq) r
     WHERE r.went GROUP BY r.stayed
)
SELECT count(*), coalesce(max(o.seq), 0), count(*) FILTER (WHERE o.created_at < $3::timestamptz),
       count(*) FILTER (WHERE o.created_at BETWEEN $3::timestamptz AND clock_timestamp()),
       coalesce(min(o.seq) FILTER (WHERE o.created_at BETWEEN $3::timestamptz AND clock_timestamp()), 0),
       (SELECT count(*) FROM gone g WHERE g.state = 6), (SELECT count(*) FROM gone g WHERE g.state = 7),
       ARRAY(SELECT r.first FROM ranges r ORDER BY r.first), ARRAY(SELECT r.last FROM ranges r ORDER BY r.first),
       ARRAY(SELECT r.events FROM ranges r ORDER BY r.first)
  FROM looked o
