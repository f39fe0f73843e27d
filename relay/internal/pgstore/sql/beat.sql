-- $1 relay, $2 its token, $3 number of the beat, $4 lease in microseconds; $5-$7 lanes with floors and whether they are
-- calm; $8 and $9 what the lanes need: lane and type; $10 the incarnation of the server that the floors are about,
-- empty: nobody asks (a standby that was promoted may have unsettled events below them); $11 and $12 beats that are not
-- needed any more: from this number on, and below that one; $13 up to where each lane is swept. No row comes back when
-- the relay was ended. Floors never fall: where they are about another server, those of the beat before stay.
--
-- The lock is what whoever ends the relay waits for, or passes over. Old beats are deleted from where the last delete
-- stopped: under a held snapshot it would else walk over all that were ever deleted.
WITH own AS MATERIALIZED (
    SELECT r.id, r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), before AS MATERIALIZED (
    {told_floors}
), told AS MATERIALIZED (
    SELECT t.place, greatest(before.floor, CASE WHEN server.same THEN t.floor ELSE 0 END) AS floor,
           greatest(before.swept, CASE WHEN server.same THEN t.swept ELSE 0 END) AS swept
      FROM (SELECT $10::text IN ('', {incarnation}) AS same) server
     CROSS JOIN unnest($5::smallint[], $6::bigint[], $13::bigint[]) WITH ORDINALITY t(lane, floor, swept, place)
      LEFT JOIN before ON before.lane = t.lane
), beat AS (
    INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered, need_lanes, need_types)
    SELECT own.id, $3::bigint, clock_timestamp() + $4::bigint * interval '1 microsecond', $5::smallint[],
           ARRAY(SELECT t.floor FROM told t ORDER BY t.place), ARRAY(SELECT t.swept FROM told t ORDER BY t.place),
           $7::boolean[], $8::smallint[], $9::text[]
      FROM own
), old AS (
    DELETE FROM {schema}.outbox_beats b USING own
     WHERE b.relay = $1::uuid AND b.number >= $11::bigint AND b.number < $12::bigint
)
SELECT own.lanes FROM own
