-- What went wrong, by event type, topic, class and words: how many attempts, of how many events, first and last seen,
-- an event of it. $1: so many of the newest dead letters that are not resolved, and attempts of so many of the newest
-- events that have any, are looked at; at most $2 groups. Answers also how many rows were looked at of each.
WITH letters AS MATERIALIZED (
    SELECT d.event_type, coalesce(d.topic, '') AS topic, 'dead: ' || d.error_reason AS class,
           coalesce(nullif(d.error_detail, ''), d.error_reason) AS error, d.failed_at AS at, d.event_id
      FROM (SELECT d.* FROM (
                SELECT d.id, d.event_type, d.topic, d.error_reason, d.error_detail, d.failed_at, d.event_id
                  FROM {schema}.outbox_dlq d ORDER BY d.id DESC LIMIT (SELECT $1::integer)) d
             WHERE NOT EXISTS (
                SELECT FROM {schema}.outbox_actions a
                 WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue') OFFSET 0)) d
), tries AS MATERIALIZED (
    SELECT a.event_id, a.number, a.class, a.topic, a.error, a.at
      FROM {schema}.outbox_attempts a ORDER BY a.event_id DESC, a.number DESC LIMIT (SELECT $1::integer)
), failing AS MATERIALIZED ( -- of events that are not dead: those have a letter
    SELECT e.event_type, t.topic, t.class, t.error, t.at, t.event_id
      FROM tries t CROSS JOIN LATERAL (
        SELECT e.event_type FROM {schema}.outbox_events e
         WHERE e.id = t.event_id AND e.state NOT IN (5, 7) OFFSET 0) e
     WHERE NOT EXISTS (SELECT FROM letters d WHERE d.event_id = t.event_id)
)
SELECT g.*, (SELECT count(*) FROM letters), (SELECT count(*) FROM tries)
  FROM (SELECT f.event_type, f.topic, f.class, f.error, count(*) AS times, count(DISTINCT f.event_id) AS events,
               min(f.at) AS first, max(f.at) AS last, (array_agg(f.event_id ORDER BY f.at DESC))[1]::text AS example
          FROM (SELECT * FROM letters UNION ALL SELECT * FROM failing) f
         GROUP BY f.event_type, f.topic, f.class, f.error ORDER BY max(f.at) DESC LIMIT (SELECT $2::integer)) g
