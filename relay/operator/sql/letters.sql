-- Finds a page of dead letters, newest first: $1 ids of events, null for all; $2 and $3 the time and number before
-- which it begins, $4 since when; $5 topic, $6 event type, $7 namespace, $8 aggregate type, $9 aggregate id, $10
-- tenant, $11 reason, $15 a piece of the error in lower case, each empty for all; $12 whether only those that nobody
-- has resolved; $13 how many to look at, $14 how many to find. Answers how many it looked at, time and number of the
-- last of these, and the numbers of what it found. Of the two ways to look one finds something, each by its index: a
-- page looks at no more than $13 rows, or at those of the events that were named, however rare is what it asks for.
WITH looked AS MATERIALIZED (
    (SELECT d.id, d.failed_at, d.topic, d.event_type, d.namespace, d.aggregate_type, d.aggregate_id, d.tenant_id,
        d.error_reason
       FROM {schema}.outbox_dlq d
      WHERE $1::text[] IS NULL AND (d.failed_at, d.id) < ($2::timestamptz, $3::bigint)
        AND d.failed_at >= $4::timestamptz
      ORDER BY d.failed_at DESC, d.id DESC LIMIT (SELECT $13::integer))
    UNION ALL
    (SELECT d.* FROM (SELECT DISTINCT u.id FROM unnest($1::text[]::uuid[]) u(id)) event
      CROSS JOIN LATERAL ( -- a look into the index for each, which OFFSET keeps it
        SELECT d.id, d.failed_at, d.topic, d.event_type, d.namespace, d.aggregate_type, d.aggregate_id, d.tenant_id,
               d.error_reason
          FROM {schema}.outbox_dlq d
         WHERE d.event_id = event.id AND (d.failed_at, d.id) < ($2::timestamptz, $3::bigint)
           AND d.failed_at >= $4::timestamptz OFFSET 0) d
      ORDER BY d.failed_at DESC, d.id DESC LIMIT (SELECT $13::integer))
), last AS (
    SELECT l.failed_at, l.id FROM looked l ORDER BY l.failed_at, l.id LIMIT 1
)
SELECT (SELECT count(*) FROM looked), (SELECT failed_at FROM last), (SELECT id FROM last), ARRAY(
    SELECT l.id FROM looked l
     WHERE ($5::text = '' OR l.topic = $5::text) AND ($6::text = '' OR l.event_type = $6::text)
       AND ($7::text = '' OR l.namespace = $7::text) AND ($8::text = '' OR l.aggregate_type = $8::text)
       AND ($9::text = '' OR l.aggregate_id = $9::text) AND ($10::text = '' OR l.tenant_id = $10::text)
       AND ($11::text = '' OR l.error_reason = $11::text)
       AND ($15::text = '' OR EXISTS (
            SELECT FROM {schema}.outbox_dlq d
             WHERE d.id = l.id AND strpos(lower(d.error_detail), $15::text) > 0 OFFSET 0))
       AND (NOT $12::boolean OR NOT EXISTS (
            SELECT FROM {schema}.outbox_actions a
             WHERE a.dlq_id = l.id AND a.verb IN ('redrive', 'discard', 'reissue') OFFSET 0))
     ORDER BY l.failed_at DESC, l.id DESC LIMIT (SELECT $14::integer))
