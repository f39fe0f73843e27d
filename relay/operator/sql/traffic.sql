-- What each topic carried in the last $1 minutes that are over, by the database's clock: how many of these have passed
-- since relays began to write, of whichever topic (minutes in which nothing happened count, those before do not);
-- events that arrived, were published and died, attempts that failed by class, how long the published ones took, and of
-- the last minute for which a survey knew it what waited and for how long; null: for none. Topics with the most to do
-- come first, at most $2.
WITH minutes AS MATERIALIZED (
    SELECT m.* FROM {schema}.outbox_minutes m
     WHERE m.minute >= date_trunc('minute', now()) - $1::integer * interval '1 minute'
       AND m.minute < date_trunc('minute', now()) -- by clock_timestamp() no index is read, and all 72 hours are
), latencies AS (
    SELECT n.topic, array_agg(n.events ORDER BY n.bucket) AS events
      FROM (SELECT m.topic, u.bucket, sum(u.n)::bigint AS events
              FROM minutes m CROSS JOIN unnest(m.latencies) WITH ORDINALITY u(n, bucket) GROUP BY m.topic, u.bucket) n
     GROUP BY n.topic
), last AS (
    SELECT DISTINCT ON (m.topic) m.topic, max(m.pending) AS pending, max(m.oldest) AS oldest
      FROM minutes m WHERE m.pending IS NOT NULL GROUP BY m.topic, m.minute ORDER BY m.topic, m.minute DESC
), sums AS (
    SELECT m.topic, sum(m.arrived)::bigint AS arrived,
           sum(m.published)::bigint AS published, sum(m.died)::bigint AS died, sum(m.rejected)::bigint AS rejected,
           sum(m.terminal)::bigint AS terminal, sum(m.topic_fault)::bigint AS topic_fault,
           sum(m.unknown)::bigint AS unknown
      FROM minutes m GROUP BY m.topic
), began AS (
    SELECT (SELECT o.minute FROM {schema}.outbox_minutes o ORDER BY o.minute LIMIT 1) AS minute
)
SELECT s.topic, least($1::integer, greatest(1,
           round(extract(epoch FROM date_trunc('minute', now()) - b.minute) / 60)))::integer, s.arrived,
       s.published, s.died, s.rejected, s.terminal, s.topic_fault, s.unknown, l.events, w.pending,
       w.oldest
  FROM sums s CROSS JOIN began b JOIN latencies l ON l.topic = s.topic LEFT JOIN last w ON w.topic = s.topic
 ORDER BY s.published + s.arrived DESC, s.topic LIMIT $2::integer
