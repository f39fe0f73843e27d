-- The last number that the sequence gave out, and the highest in use: of an event, or a lane's floor. The snapshot of
-- the tables is older than the look at the sequence, so whoever draws and commits meanwhile makes no difference. One
-- look-up in an index for each lane, at its newest end, however many events there are.
WITH used AS MATERIALIZED (
    SELECT greatest(max(l.floor), max((SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane
                                        ORDER BY e.seq DESC LIMIT 1)), 0) AS highest
      FROM {schema}.outbox_lane_status l
)
SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END, u.highest
  FROM {schema}.outbox_events_seq_seq s CROSS JOIN used u
