-- A page of what people did, the newest first: $1 the number below which it begins; $2 the event, $3 the actor, $4 the
-- verb, $5 the role that had logged in, each empty for all; $6 and $7 since and until when; $8 how many to look at, $9
-- how many to find. The first column is how many it looked at, the second the number of the last of these. Of the two
-- ways to look one finds something, each by its index: a page looks at no more than $8 rows.
WITH looked AS MATERIALIZED (
    (SELECT a.* FROM {schema}.outbox_actions a WHERE $2::text = '' AND a.id < $1::bigint
      ORDER BY a.id DESC LIMIT (SELECT $8::integer))
    UNION ALL
    (SELECT a.* FROM (SELECT a.* FROM {schema}.outbox_actions a
                       WHERE a.event_id = nullif($2::text, '')::uuid OFFSET 0) a
      WHERE a.id < $1::bigint ORDER BY a.id DESC LIMIT (SELECT $8::integer))
), seen AS MATERIALIZED (
    SELECT count(*) AS looked, coalesce(min(l.id), 0) AS last FROM looked l
)
SELECT s.looked, s.last, f.*
  FROM seen s LEFT JOIN LATERAL (
       SELECT l.id, l.action_id::text, l.verb, CASE WHEN l.target IS NULL THEN l.event_id::text ELSE '' END,
              coalesce(l.target, ''), coalesce(l.dlq_id, 0), l.actor, l.session_role::text, l.reason, l.acted_at
         FROM looked l
        WHERE ($3::text = '' OR l.actor = $3::text) AND ($4::text = '' OR l.verb = $4::text)
          AND ($5::text = '' OR l.session_role = $5::text)
          AND ($6::timestamptz IS NULL OR l.acted_at >= $6::timestamptz)
          AND ($7::timestamptz IS NULL OR l.acted_at < $7::timestamptz)
        ORDER BY l.id DESC LIMIT (SELECT $9::integer)) f ON true
