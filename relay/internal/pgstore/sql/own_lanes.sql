-- $1 relay, $2 its token. Writes to the relay's row which lanes name it as their owner; it is locked by now. That row
-- is what settles and reads ask.
UPDATE {schema}.outbox_relays r SET lanes = own.lanes
  FROM (SELECT ARRAY(SELECT l.lane FROM {schema}.outbox_lanes l WHERE l.layout = 1 AND l.owner = $1::uuid
                      ORDER BY l.lane) AS lanes) own
 WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL AND r.lanes <> own.lanes
