-- $1 the cut-off, $2 how many rows are few. Answers how many published events are older, and how many are not: no
-- more than it takes to see that those are the greater part.
WITH due AS MATERIALIZED (SELECT count(*) AS n FROM {schema}.outbox_events e WHERE e.published_at < $1::timestamptz)
SELECT d.n, CASE WHEN d.n < $2::bigint THEN 0 ELSE (
           SELECT count(*) FROM (SELECT FROM {schema}.outbox_events e WHERE e.published_at >= $1::timestamptz
                                  ORDER BY e.published_at LIMIT (SELECT n FROM due)) AS staying) END
  FROM due d
