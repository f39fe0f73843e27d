-- $1 lanes, $2 tokens, $3 floors, $4 lease in microseconds, $5 and $6 what the lanes need: lane and type, $7 the
-- incarnation of the server that the floors are about, empty: nobody asks. A standby that was promoted may have
-- unsettled events below them. $8 which lanes are calm: their count of crashes begins anew.
-- The rows are locked in one order, so that a renewal and a release of the same lanes cannot deadlock, and
-- not FOR UPDATE: a settle holds FOR KEY SHARE, and a renewal must not wait for it.
WITH own AS MATERIALIZED (
    SELECT l.lane, CASE WHEN $7::text IN ('', {incarnation}) THEN t.floor ELSE 0 END AS floor, t.calm
      FROM {schema}.outbox_lanes l
      JOIN unnest($1::smallint[], $2::uuid[], $3::bigint[], $8::boolean[]) t(lane, token, floor, calm)
        ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR NO KEY UPDATE OF l
)
UPDATE {schema}.outbox_lanes l
   SET lease_until = clock_timestamp() + $4::bigint * interval '1 microsecond',
       floor = greatest(l.floor, own.floor), crash_count = CASE WHEN own.calm THEN 0 ELSE l.crash_count END,
       needs = ARRAY(SELECT n.type FROM unnest($5::smallint[], $6::text[]) n(lane, type) WHERE n.lane = l.lane)
  FROM own WHERE l.layout = 1 AND l.lane = own.lane
RETURNING l.lane
