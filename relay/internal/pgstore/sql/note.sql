-- $1 lane, $2 token, $3 the event that is sent next, or null when the noted one is not being sent any more; $4 tells
-- that a publish of it was answered, which takes one death off its count. An event that relays have died with stays
-- noted until it is settled, or until that count is zero. Meanwhile another one only takes the mark from it that says
-- that it is being sent.
UPDATE {schema}.outbox_lanes
   SET marked_count =
           marked_count - ($4::boolean AND marked_count > 0 AND marked_by IS NOT DISTINCT FROM token)::integer,
       marked_event = CASE WHEN marked_count > ($4::boolean AND marked_by IS NOT DISTINCT FROM token)::integer
                           THEN marked_event ELSE $3::uuid END,
       marked_by = CASE WHEN marked_count = 0 OR marked_event = $3::uuid THEN $2::uuid END
 WHERE layout = 1 AND lane = $1::smallint AND token = $2::uuid
