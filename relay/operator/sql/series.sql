-- What was carried minute by minute in the last $1 minutes that are over, by the database's clock, the oldest first: of
-- the topic $2, empty for all together. Minutes in which nothing happened have zeros from the first that relays have
-- written of, of whichever topic, on; before it nobody was there to write. The newest is left out until somebody has
-- written it: relays come to that a while after it is over, and it would look as if nothing had happened. What waited
-- is of each topic what the relay says that saw most, and of all topics the sum of those of which it is known.
WITH bounds AS MATERIALIZED (
    SELECT greatest(date_trunc('minute', o.minute), date_trunc('minute', now()) - $1::integer * interval '1 minute')
               AS first,
           date_trunc('minute', now()) - CASE WHEN EXISTS (
               SELECT FROM {schema}.outbox_minutes n
                WHERE n.minute >= date_trunc('minute', now()) - interval '1 minute'
                  AND n.minute < date_trunc('minute', now())) THEN interval '1 minute' ELSE interval '2 minutes' END
               AS last
      FROM (SELECT o.minute FROM {schema}.outbox_minutes o ORDER BY o.minute LIMIT 1) o
), topics AS MATERIALIZED (
    SELECT m.minute, m.topic, sum(m.arrived) AS arrived, sum(m.published) AS published, sum(m.died) AS died,
           sum(m.rejected) AS rejected, sum(m.terminal) AS terminal, sum(m.topic_fault) AS topic_fault,
           sum(m.unknown) AS unknown, max(m.pending) AS pending, max(m.oldest) AS oldest, ARRAY[
               sum(m.latencies[1]), sum(m.latencies[2]), sum(m.latencies[3]), sum(m.latencies[4]),
               sum(m.latencies[5]), sum(m.latencies[6]), sum(m.latencies[7]), sum(m.latencies[8]),
               sum(m.latencies[9]), sum(m.latencies[10]), sum(m.latencies[11]), sum(m.latencies[12]),
               sum(m.latencies[13]), sum(m.latencies[14]), sum(m.latencies[15]), sum(m.latencies[16])] AS latencies
      FROM {schema}.outbox_minutes m
     WHERE m.minute >= date_trunc('minute', now()) - $1::integer * interval '1 minute'
       AND m.minute < date_trunc('minute', now()) -- by clock_timestamp() no index is read, and all 72 hours are
       AND ($2::text = '' OR m.topic = $2::text)
     GROUP BY m.minute, m.topic
), minutes AS MATERIALIZED (
    SELECT m.minute, sum(m.arrived) AS arrived, sum(m.published) AS published, sum(m.died) AS died,
           sum(m.rejected) AS rejected, sum(m.terminal) AS terminal, sum(m.topic_fault) AS topic_fault,
           sum(m.unknown) AS unknown, sum(m.pending) AS pending, max(m.oldest) AS oldest, ARRAY[
               sum(m.latencies[1]), sum(m.latencies[2]), sum(m.latencies[3]), sum(m.latencies[4]),
               sum(m.latencies[5]), sum(m.latencies[6]), sum(m.latencies[7]), sum(m.latencies[8]),
               sum(m.latencies[9]), sum(m.latencies[10]), sum(m.latencies[11]), sum(m.latencies[12]),
               sum(m.latencies[13]), sum(m.latencies[14]), sum(m.latencies[15]), sum(m.latencies[16])] AS latencies
      FROM topics m GROUP BY m.minute
)
SELECT g.minute, coalesce(m.arrived, 0)::bigint, coalesce(m.published, 0)::bigint, coalesce(m.died, 0)::bigint,
       coalesce(m.rejected, 0)::bigint, coalesce(m.terminal, 0)::bigint, coalesce(m.topic_fault, 0)::bigint,
       coalesce(m.unknown, 0)::bigint, coalesce(m.latencies, array_fill(0, ARRAY[16]))::bigint[], m.pending::bigint,
       m.oldest
  FROM bounds b CROSS JOIN generate_series(b.first, b.last, interval '1 minute') g(minute)
  LEFT JOIN minutes m ON m.minute = g.minute
 ORDER BY g.minute
