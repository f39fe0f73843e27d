-- $1 relay, $2 its token; $3-$6 lanes with the tokens of their acquisitions, floors and whether they are calm; $7 and
-- $8 what the lanes need: lane and type; $9 as $10 of beat.sql; $10 tokens of acquisitions whose outcome is not known,
-- $11 that the relay ends, and gives back whatever it has; $12 up to where
-- the lanes are swept.
-- The relay's row is locked by now (own_to_give.sql). What its newest beat says counts as well, or a floor would fall
-- back to where it was when the lane was taken. A release that was given up and comes late has the token of an
-- acquisition that is over, and changes nothing.
WITH before AS MATERIALIZED (
    {told_floors}
), own AS MATERIALIZED (
    SELECT l.lane, t.lane IS NOT NULL AS told, t.calm,
           greatest(before.floor, CASE WHEN server.same THEN t.floor ELSE 0 END) AS floor,
           greatest(before.swept, CASE WHEN server.same THEN t.swept ELSE 0 END) AS swept
      FROM {schema}.outbox_relays r
     CROSS JOIN (SELECT $9::text IN ('', {incarnation}) AS same) server
      JOIN {schema}.outbox_lanes l ON l.layout = 1 AND l.owner = r.id
      LEFT JOIN unnest($3::smallint[], $4::uuid[], $5::bigint[], $6::boolean[], $12::bigint[])
           t(lane, token, floor, calm, swept)
        ON l.lane = t.lane AND l.token = t.token
      LEFT JOIN before ON before.lane = l.lane
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL
       AND (t.lane IS NOT NULL OR l.token = ANY($10::uuid[]) OR $11::boolean)
     ORDER BY l.lane FOR NO KEY UPDATE OF l
)
UPDATE {schema}.outbox_lanes l
   SET owner = NULL, token = NULL, crashed = l.crashed AND NOT own.told,
       floor = greatest(l.floor, own.floor), swept = greatest(l.swept, own.swept),
       crash_count = CASE WHEN own.calm THEN 0 ELSE l.crash_count END,
       needs = CASE WHEN own.told THEN ARRAY(
           SELECT n.type FROM unnest($7::smallint[], $8::text[]) n(lane, type) WHERE n.lane = l.lane) ELSE l.needs END
  FROM own WHERE l.layout = 1 AND l.lane = own.lane
