-- $1 relay, $2 its token, $3 lanes, $4 event types, $5 how many at most. A lane that is lost is left alone, the
-- others are not. Held rows are locked by lane and number, as everywhere; the events stay as they are: held. For the
-- limits see due_keys.sql.
-- Kinds: 1 retrying, 2 parked.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), parked AS MATERIALIZED (
    SELECT p.lane, p.seq FROM own CROSS JOIN unnest(own.lanes) l(lane) CROSS JOIN LATERAL (
        SELECT h.lane, h.seq FROM (
            SELECT r.lane, r.seq, r.event_type FROM {schema}.outbox_held r WHERE r.lane = l.lane AND r.kind = 2
             ORDER BY r.since, r.seq LIMIT (SELECT 9223372036854775807)) h
         WHERE h.event_type = ANY($4::text[]) LIMIT (SELECT $5::integer)) p
     WHERE l.lane = ANY($3::smallint[])
     LIMIT (SELECT $5::integer)
), locked AS MATERIALIZED (
    SELECT p.lane, p.seq FROM (SELECT * FROM parked ORDER BY lane, seq) p CROSS JOIN LATERAL (
        SELECT FROM {schema}.outbox_held h WHERE h.lane = p.lane AND h.seq = p.seq AND h.kind = 2 FOR UPDATE) h
)
UPDATE {schema}.outbox_held h SET kind = 1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
  FROM locked k WHERE h.lane = k.lane AND h.seq = k.seq
