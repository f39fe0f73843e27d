-- Who holds the lane $1 and how far it is, as its owner said last. Marks are of events that are sent alone.
SELECT l.owner IS NOT NULL, coalesce(l.owner::text, ''), coalesce(r.name, ''), r.ended_at IS NOT NULL, l.acquired_at,
       b.at, b.until, greatest(l.floor, s.floor), l.crash_count, coalesce(m.event_id::text, ''), coalesce(m.deaths, 0)
  FROM {schema}.outbox_lanes l
  LEFT JOIN {schema}.outbox_relays r ON r.id = l.owner
  LEFT JOIN LATERAL (
       SELECT b.at, b.until, b.lanes, b.floors FROM {schema}.outbox_beats b WHERE b.relay = r.id
        ORDER BY b.number DESC LIMIT 1) b ON true
  LEFT JOIN LATERAL (
       SELECT s.floor FROM unnest(b.lanes, b.floors) s(lane, floor) WHERE s.lane = l.lane) s ON true
  LEFT JOIN {schema}.outbox_markers m ON m.layout = l.layout AND m.lane = l.lane
 WHERE l.layout = 1 AND l.lane = $1::integer
