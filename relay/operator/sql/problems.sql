-- What went wrong, by event type, topic, class and words: how many attempts, of which events, first and last seen, an
-- event of it. $1: so many of the newest dead letters, and attempts of the newest events that have any, are looked at.
-- Letters that are resolved count for nothing, and so do attempts of events that are published, discarded or dead: a
-- dead one has a letter. Answers first how many rows were looked at of each, also where nothing is wrong: then once,
-- without a problem. States: 0 ready, 1 held.
WITH newest AS MATERIALIZED (
    SELECT d.id, d.event_type, d.topic, d.error_reason, d.error_detail, d.failed_at, d.event_id
      FROM {schema}.outbox_dlq d ORDER BY d.id DESC LIMIT (SELECT $1::integer)
), letters AS MATERIALIZED (
    SELECT d.event_type, coalesce(d.topic, '') AS topic, 'dead: ' || d.error_reason AS class,
           coalesce(nullif(d.error_detail, ''), d.error_reason) AS error, d.failed_at AS at, d.event_id
      FROM newest d
     WHERE NOT EXISTS (
        SELECT FROM {schema}.outbox_actions a
         WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue') OFFSET 0)
), tries AS MATERIALIZED (
    SELECT a.event_id, a.number, a.class, a.topic, a.error, a.at
      FROM {schema}.outbox_attempts a ORDER BY a.event_id DESC, a.number DESC LIMIT (SELECT $1::integer)
), failing AS MATERIALIZED (
    SELECT e.event_type, t.topic, t.class, t.error, t.at, t.event_id
      FROM tries t CROSS JOIN LATERAL (
        SELECT e.event_type FROM {schema}.outbox_events e
         WHERE e.id = t.event_id AND e.state IN (0, 1) OFFSET 0) e
     WHERE NOT EXISTS (SELECT FROM letters d WHERE d.event_id = t.event_id)
)
SELECT (SELECT count(*) FROM newest), (SELECT count(*) FROM tries), g.event_type, g.topic, g.class, g.error, g.times,
       g.events, g.first, g.last, g.example
  FROM (SELECT) one LEFT JOIN (
       SELECT f.event_type, f.topic, f.class, f.error, count(*) AS times,
              array_agg(DISTINCT f.event_id::text) AS events,
              min(f.at) AS first, max(f.at) AS last, (array_agg(f.event_id ORDER BY f.at DESC))[1]::text AS example
         FROM (SELECT * FROM letters UNION ALL SELECT * FROM failing) f
        GROUP BY f.event_type, f.topic, f.class, f.error) g ON true
