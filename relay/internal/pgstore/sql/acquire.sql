-- $1 lanes in the order of preference, $2 how many at most, $3 relay and $4 its token, $5 token of this acquisition.
-- The relay's row is locked by now (own_to_take.sql), so a relay that was ended takes nothing. The lock on the layout
-- keeps it as it is until this has committed; who changes it takes FOR UPDATE.
-- Materialised, or the planner may run the LIMIT once for every row that it joins and take more lanes.
WITH layout AS MATERIALIZED (
    SELECT FROM {schema}.outbox_meta m WHERE m.lane_layout = 1 FOR KEY SHARE
), free AS MATERIALIZED (
    SELECT l.lane FROM unnest($1::smallint[]) WITH ORDINALITY w(lane, place)
      JOIN {schema}.outbox_lanes l ON l.lane = w.lane
     WHERE l.layout = 1 AND l.owner IS NULL AND EXISTS (SELECT FROM layout)
       AND EXISTS (SELECT FROM {schema}.outbox_relays r
                    WHERE r.id = $3::uuid AND r.token = $4::uuid AND r.ended_at IS NULL)
     ORDER BY w.place LIMIT $2::integer FOR UPDATE OF l SKIP LOCKED
)
UPDATE {schema}.outbox_lanes l SET owner = $3::uuid, token = $5::uuid, acquired_at = clock_timestamp()
  FROM free LEFT JOIN {schema}.outbox_markers m ON m.layout = 1 AND m.lane = free.lane
 WHERE l.layout = 1 AND l.lane = free.lane
RETURNING l.lane, l.floor, l.swept, l.crashed, l.crash_count, m.event_id, coalesce(m.deaths, 0), {incarnation}
