-- $1 lane, $2 token, $3 event, or null. An event that relays have died with stays noted until it is settled, or
-- until as many have died without it: another one only takes the mark from it that says that it is being sent.
UPDATE {schema}.outbox_lanes
   SET noted_event = CASE WHEN noted_count > 0 THEN noted_event ELSE $3::uuid END,
       noted_by = CASE WHEN noted_count = 0 OR noted_event = $3::uuid THEN $2::uuid END
 WHERE layout = 1 AND lane = $1::smallint AND token = $2::uuid
