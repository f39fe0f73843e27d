-- $1 the cut-off, $2 how many rows are few. Answers how many dedupe keys are older, and how many are not: no more than
-- it takes to see that those are the greater part. At most so many go, since those whose events are still there are
-- counted as well. To look for each of them would take too long.
WITH due AS MATERIALIZED (SELECT count(*) AS n FROM {schema}.outbox_dedupe k WHERE k.created_at < $1::timestamptz)
SELECT d.n, CASE WHEN d.n < $2::bigint THEN 0 ELSE (
           SELECT count(*) FROM (SELECT FROM {schema}.outbox_dedupe k WHERE k.created_at >= $1::timestamptz
                                  ORDER BY k.created_at LIMIT (SELECT n FROM due)) AS staying) END
  FROM due d
