-- $1 relay. The floors that its newest beat tells, and up to where it has swept.
SELECT f.lane, f.floor, f.swept FROM (
    SELECT b.lanes, b.floors, b.swept FROM {schema}.outbox_beats b WHERE b.relay = $1::uuid ORDER BY b.number DESC
     LIMIT (SELECT 1)) b CROSS JOIN unnest(b.lanes, b.floors, b.swept) f(lane, floor, swept)
