-- $1-$3 lanes, and time and number behind which each is read, $4 event types, $5 how many rows to look at; null: all;
-- $6 relay, $7 its token. A lane that is lost is left alone, the others are not. The lanes come in the order asked for.
-- Held rows are locked by lane and number, as everywhere; the events stay as they are: held. The last row that was
-- looked at is the answer, and how many there were. For the limits see due_keys.sql.
-- Kinds: 1 retrying, 2 parked.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $6::uuid AND r.token = $7::uuid AND r.ended_at IS NULL FOR KEY SHARE
), looked AS MATERIALIZED (
    SELECT p.*, row_number() OVER () AS number
      FROM (
        SELECT p.lane, p.since, p.seq, p.event_type
          FROM own CROSS JOIN unnest($1::smallint[], $2::timestamptz[], $3::bigint[]) l(lane, since, seq)
         CROSS JOIN LATERAL (
            SELECT r.lane, r.since, r.seq, r.event_type FROM {schema}.outbox_held r
             WHERE r.lane = l.lane AND r.kind = 2 AND (r.since, r.seq) > (l.since, l.seq)
             ORDER BY r.since, r.seq LIMIT (SELECT $5::integer)) p
         WHERE l.lane = ANY(own.lanes) LIMIT (SELECT $5::integer)
      ) p
), locked AS MATERIALIZED (
    SELECT p.lane, p.seq FROM (
        SELECT * FROM looked WHERE event_type IN (SELECT unnest($4::text[])) ORDER BY lane, seq) p
     CROSS JOIN LATERAL (
        SELECT FROM {schema}.outbox_held h WHERE h.lane = p.lane AND h.seq = p.seq AND h.kind = 2 FOR UPDATE) h
), changed AS (
    UPDATE {schema}.outbox_held h SET kind = 1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
      FROM locked k WHERE h.lane = k.lane AND h.seq = k.seq
)
SELECT {incarnation} AS incarnation, {lost} AS lost, l.lane, l.since, l.seq, l.number
  FROM (SELECT) one LEFT JOIN (SELECT * FROM looked ORDER BY number DESC LIMIT (SELECT 1)) l ON true
