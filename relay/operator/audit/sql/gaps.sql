-- How many events have a number from $1 to $2, and the ranges of numbers that no event has and in which retention
-- deleted nothing: their firsts and their lasts.
-- Each lane has a look into the index of its own, and the limits are hidden from the planner.
WITH present AS MATERIALIZED (
    SELECT e.seq FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
        SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane AND e.seq BETWEEN $1::bigint AND $2::bigint
         ORDER BY e.seq LIMIT (SELECT 9223372036854775807)) e
), taken AS MATERIALIZED (
    SELECT e.seq AS first_seq, e.seq AS last_seq FROM present e
    UNION ALL
    SELECT p.first_seq, p.last_seq FROM (
        (SELECT p.first_seq, p.last_seq FROM {schema}.outbox_pruned p WHERE p.first_seq < $1::bigint
          ORDER BY p.first_seq DESC LIMIT (SELECT 1))
        UNION ALL
        SELECT p.first_seq, p.last_seq FROM {schema}.outbox_pruned p
         WHERE p.first_seq BETWEEN $1::bigint AND $2::bigint) p
     WHERE p.last_seq >= $1::bigint
    UNION ALL
    SELECT $2::bigint + 1, $2::bigint + 1
), gaps AS (
    SELECT greatest(coalesce(max(t.last_seq) OVER (ORDER BY t.first_seq, t.last_seq
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 1, $1::bigint), $1::bigint) AS first_seq,
           t.first_seq - 1 AS last_seq
      FROM taken t
)
SELECT (SELECT count(*) FROM present), coalesce(array_agg(g.first_seq ORDER BY g.first_seq), '{}'),
       coalesce(array_agg(g.last_seq ORDER BY g.first_seq), '{}')
  FROM gaps g WHERE g.first_seq <= g.last_seq
