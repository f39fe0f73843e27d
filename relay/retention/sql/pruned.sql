-- Writes down which numbers went: $1 the firsts of their ranges, $2 their lasts, $3 how many went in each. A range is
-- joined with those in it and with the ones beside it, unless an event stands between them.
WITH fresh AS MATERIALIZED (
    SELECT f.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS f(first_seq, last_seq, events)
), beside AS MATERIALIZED (
    SELECT DISTINCT p.first_seq, p.last_seq, p.events FROM fresh f CROSS JOIN LATERAL (
        (SELECT p.* FROM {schema}.outbox_pruned p WHERE p.first_seq <= f.first_seq
          ORDER BY p.first_seq DESC LIMIT (SELECT 1))
        UNION ALL
        SELECT p.* FROM {schema}.outbox_pruned p WHERE p.first_seq > f.first_seq AND p.first_seq <= f.last_seq
        UNION ALL
        (SELECT p.* FROM {schema}.outbox_pruned p WHERE p.first_seq > f.last_seq
          ORDER BY p.first_seq LIMIT (SELECT 1))) p
), parts AS MATERIALIZED (
    SELECT a.*, max(a.last_seq) OVER (ORDER BY a.first_seq, a.last_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
           AS before
      FROM (SELECT b.* FROM beside b UNION ALL SELECT f.* FROM fresh f) a
), divided AS MATERIALIZED (
    SELECT p.*, p.before IS NULL OR EXISTS (
               SELECT FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
                   SELECT e.seq FROM {schema}.outbox_events e
                    WHERE e.lane = l.lane AND e.seq > p.before AND e.seq < p.first_seq
                    ORDER BY e.seq LIMIT (SELECT 1)) e) AS begins
      FROM parts p
), joined AS MATERIALIZED (
    SELECT min(j.first_seq) AS first_seq, max(j.last_seq) AS last_seq, sum(j.events)::bigint AS events
      FROM (SELECT d.*, count(*) FILTER (WHERE d.begins) OVER (ORDER BY d.first_seq, d.last_seq) AS part
              FROM divided d) j
     GROUP BY j.part
), swallowed AS (
    DELETE FROM {schema}.outbox_pruned p USING beside b
     WHERE p.first_seq = b.first_seq AND NOT EXISTS (SELECT FROM joined j WHERE j.first_seq = b.first_seq)
)
INSERT INTO {schema}.outbox_pruned AS p (first_seq, last_seq, events)
SELECT j.first_seq, j.last_seq, j.events FROM joined j
ON CONFLICT (first_seq) DO UPDATE
   SET last_seq = excluded.last_seq, events = excluded.events, changed_at = clock_timestamp()
 WHERE (p.last_seq, p.events) IS DISTINCT FROM (excluded.last_seq, excluded.events)
