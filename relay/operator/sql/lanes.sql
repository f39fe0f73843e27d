-- The lanes of the layout in force: who holds each since when and until when, how far it is, and the newest number in
-- it. One look-up in an index for each lane, at its newest end.
SELECT l.lane, coalesce(l.owner::text, ''), coalesce(l.owner_name, ''),
       l.owner IS NOT NULL AND coalesce(l.lease_until >= clock_timestamp(), false),
       l.lease_until, l.acquired_at, l.floor,
       coalesce((SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane ORDER BY e.seq DESC LIMIT 1), 0),
       l.needs, l.crash_count, coalesce(l.marked_event::text, ''), l.marked_deaths
  FROM {schema}.outbox_lane_status l JOIN {schema}.outbox_meta m ON m.lane_layout = l.layout
 ORDER BY l.lane
