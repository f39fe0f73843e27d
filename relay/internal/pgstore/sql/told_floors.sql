-- $1 relay. The floors that its newest beat tells.
SELECT f.lane, f.floor FROM (
    SELECT b.lanes, b.floors FROM {schema}.outbox_beats b WHERE b.relay = $1::uuid ORDER BY b.number DESC
     LIMIT (SELECT 1)) b CROSS JOIN unnest(b.lanes, b.floors) f(lane, floor)
