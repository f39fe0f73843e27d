-- $1 lanes in the order of preference, $2 how many at most, $3 relay, $4 token, $5 lease in microseconds, $6 that
-- nobody's death is counted.
-- Materialised, or the planner may run the LIMIT once for every row that it joins and take more lanes.
-- An owner that lost the lane and is alive did not die of it. One that died soon after it had taken the lane may look
-- alive for a moment longer than its lease, where a heartbeat that did not know of the lane yet came after the
-- acquisition; who lives renews itself every third of a lease, and so is alive for much longer. Only a crash of the
-- owner that noted the event itself counts against it. One that had taken the mark from the event died of something
-- else, which speaks for the event: at zero the note is free for another. SKIP LOCKED passes over a lane whose settle
-- is running: it is taken when that has ended.
WITH free AS MATERIALIZED (
    SELECT l.lane, l.owner IS NOT NULL AS crashed,
           NOT $6::boolean AND l.owner IS NOT NULL AND NOT EXISTS (
               SELECT FROM {schema}.outbox_relays r WHERE r.id = l.owner AND r.alive_until > clock_timestamp()
                  AND r.alive_until > l.lease_until + $5::bigint / 3 * interval '1 microsecond') AS died
      FROM unnest($1::smallint[]) WITH ORDINALITY w(lane, place) JOIN {schema}.outbox_lanes l ON l.lane = w.lane
     WHERE l.layout = 1 AND (l.lease_until IS NULL OR l.lease_until < clock_timestamp())
     ORDER BY w.place LIMIT $2::integer FOR UPDATE OF l SKIP LOCKED
)
UPDATE {schema}.outbox_lanes l
   SET owner = $3::uuid, token = $4::uuid, acquired_at = clock_timestamp(),
       lease_until = clock_timestamp() + $5::bigint * interval '1 microsecond',
       crash_count = l.crash_count + free.died::integer,
       marked_count = CASE WHEN NOT free.died OR l.marked_event IS NULL THEN l.marked_count
                           WHEN l.marked_by = l.token THEN l.marked_count + 1
                           WHEN l.marked_by IS NULL THEN greatest(0, l.marked_count - 1) ELSE l.marked_count END
  FROM free WHERE l.layout = 1 AND l.lane = free.lane
RETURNING l.lane, l.floor, free.crashed, l.crash_count, l.marked_event, l.marked_count, {incarnation}
