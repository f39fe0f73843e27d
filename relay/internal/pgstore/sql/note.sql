-- $1 lane, $2 token, $3 the event that is sent next, or null when the noted one is not being sent any more; $4 tells that a
-- publish of it was answered, which takes one death off its count. An event that relays have died with stays noted until it is
-- settled, or until that count is zero. Meanwhile another one only takes the mark from it that says that it is being sent.
UPDATE {schema}.outbox_lanes
   SET noted_count = noted_count - ($4::boolean AND noted_count > 0 AND noted_by IS NOT DISTINCT FROM token)::integer,
       noted_event = CASE WHEN noted_count > ($4::boolean AND noted_by IS NOT DISTINCT FROM token)::integer THEN noted_event ELSE $3::uuid END,
       noted_by = CASE WHEN noted_count = 0 OR noted_event = $3::uuid THEN $2::uuid END
 WHERE layout = 1 AND lane = $1::smallint AND token = $2::uuid
