-- The last number that the sequence gave out, and the highest in use: of an event, or a lane's floor. The snapshot of
-- the tables is older than the look at the sequence, so whoever draws and commits meanwhile makes no difference. One
-- step of the recursion for each event type, two look-ups in an index each, however many events there are.
WITH RECURSIVE types AS (
    (SELECT event_type FROM {schema}.outbox_events ORDER BY event_type LIMIT 1)
    UNION ALL
    SELECT (SELECT e.event_type FROM {schema}.outbox_events e
             WHERE e.event_type > t.event_type ORDER BY e.event_type LIMIT 1)
      FROM types t WHERE t.event_type IS NOT NULL
), newest AS (
    SELECT (SELECT e.seq FROM {schema}.outbox_events e WHERE e.event_type = t.event_type ORDER BY e.seq DESC LIMIT 1) AS
           seq
      FROM types t
), used AS MATERIALIZED (
    SELECT greatest((SELECT max(n.seq) FROM newest n), (SELECT max(l.floor) FROM {schema}.outbox_lane_status l), 0) AS
           highest
)
SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END, u.highest
  FROM {schema}.outbox_events_seq_seq s CROSS JOIN used u
