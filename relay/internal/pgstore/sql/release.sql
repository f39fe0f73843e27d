-- $1 lanes, $2 tokens, $3 floors, $4 and $5 what the lanes need: lane and type, $6 and $7 as $7 and $8 of renew.sql
WITH own AS MATERIALIZED (
    SELECT l.lane, CASE WHEN $6::text IN ('', {incarnation}) THEN t.floor ELSE 0 END AS floor, t.calm
      FROM {schema}.outbox_lanes l
      JOIN unnest($1::smallint[], $2::uuid[], $3::bigint[], $7::boolean[]) t(lane, token, floor, calm)
        ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR NO KEY UPDATE OF l
)
UPDATE {schema}.outbox_lanes l
   SET owner = NULL, token = NULL, lease_until = NULL,
       floor = greatest(l.floor, own.floor), crash_count = CASE WHEN own.calm THEN 0 ELSE l.crash_count END,
       needs = ARRAY(SELECT n.type FROM unnest($4::smallint[], $5::text[]) n(lane, type) WHERE n.lane = l.lane)
  FROM own WHERE l.layout = 1 AND l.lane = own.lane
