-- $1 relay, $2 its token, $3 lanes of the batch; $4-$12 of each event: lane, number, version of the held row that was
-- read (0: it was ready), what becomes of it, attempts, delay of a retry in microseconds, topic, reason of a death,
-- detail; $13 and $14 the lowest and the highest number; $15 lanes whose marker is cleared; $16 and $17 of each event
-- again: class and topic of the publish that failed, if there was one. By lane and number.
--
-- The relay's row is locked before anything is looked at, and asked for the lanes as it is then: a sub-select would
-- read a snapshot and let the settle of a relay through whose lane is being given away. Who ends the relay passes over
-- the locked row, so this is one statement that commits itself.
--
-- The row that says how an event stands decides. Of one that was read as held this is the row of outbox_held, which is
-- locked first, in the order in which operators lock it as well, and must have the version that was read: whatever an
-- operator did since then, and this same settle when it is sent again, has another. Only what is published asks for no
-- version: acknowledged is acknowledged. Of one that was ready it is the event itself, and its held row is made from
-- what was changed. A dead letter is written from the row that died, by the same statement: there is never one without
-- the other. What was not as it had been read is answered, because the relay knows nothing about it then.
-- For the limit that is none see settle_published.sql; events are locked by number there as well, so that two settles
-- of the same ones wait for each other.
-- States: 0 ready, 1 held, 5 dead, 6 published. Kinds: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), mine AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[]) AS ok
), asked AS MATERIALIZED (
    SELECT a.*
      FROM unnest((SELECT $4::smallint[]), (SELECT $5::bigint[]), (SELECT $6::bigint[]), (SELECT $7::smallint[]),
           (SELECT $8::integer[]), (SELECT $9::bigint[]), (SELECT $10::text[]), (SELECT $11::text[]),
           (SELECT $12::text[]), (SELECT $16::text[]), (SELECT $17::text[])) WITH ORDINALITY
           a(lane, seq, version, next, attempts, delay, topic, reason, detail, tried, tried_on, number)
     WHERE (SELECT ok FROM mine) ORDER BY a.number LIMIT (SELECT 9223372036854775807)
), locked AS MATERIALIZED ( -- one by one, so in the order of the asked
    SELECT a.* FROM asked a CROSS JOIN LATERAL (
        SELECT FROM {schema}.outbox_held h
         WHERE h.lane = a.lane AND h.seq = a.seq
           AND CASE WHEN a.next = 6 THEN h.kind IN (1, 3)
                    WHEN a.next IN (1, 2) THEN h.kind IN (1, 3) AND h.version = a.version
                    WHEN a.next IN (4, 5) THEN h.kind IN (1, 2, 3) AND h.version = a.version END
           FOR UPDATE) h
), let_go AS (
    DELETE FROM {schema}.outbox_held h USING locked k WHERE h.lane = k.lane AND h.seq = k.seq AND k.next IN (5, 6)
), kept AS (
    UPDATE {schema}.outbox_held h
       SET kind = k.next, since = clock_timestamp(), version = DEFAULT,
           due = CASE k.next WHEN 1 THEN clock_timestamp() + k.delay * interval '1 microsecond' END
      FROM locked k WHERE h.lane = k.lane AND h.seq = k.seq AND k.next IN (1, 2, 4)
), settled AS (
    UPDATE {schema}.outbox_events e
       SET state = CASE WHEN s.next < 5 THEN 1 ELSE s.next END,
           published_at = CASE s.next WHEN 6 THEN clock_timestamp() END,
           attempt_count = CASE WHEN s.next IN (1, 4, 5) THEN s.attempts ELSE e.attempt_count END,
           last_error = CASE WHEN s.next IN (3, 6) THEN e.last_error ELSE coalesce(nullif(s.detail, ''), s.reason) END
      FROM (SELECT a.*, 0 AS state FROM asked a WHERE a.version = 0
            UNION ALL SELECT k.*, 1 FROM locked k ORDER BY seq) s
     WHERE e.lane = s.lane AND e.seq = s.seq AND e.seq BETWEEN $13::bigint AND $14::bigint AND e.state = s.state
    RETURNING e.lane, e.seq, e.id, e.created_at, e.attempt_count, e.namespace, e.tenant_id, e.dedupe_key, e.event_type,
              e.aggregate_type, e.aggregate_id, e.payload_json, e.headers, s.state AS was, s.next, s.delay, s.topic,
              s.reason, s.detail, s.tried, s.tried_on, s.number
), entered AS ( -- what stands there already is a mistake, which must not stop the lane
    INSERT INTO {schema}.outbox_held AS h (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
    SELECT lane, seq, next, CASE next WHEN 1 THEN clock_timestamp() + delay * interval '1 microsecond' END, namespace,
           event_type, aggregate_type, aggregate_id
      FROM settled WHERE was = 0 AND next < 5
    ON CONFLICT (lane, seq) DO UPDATE
       SET kind = excluded.kind, due = excluded.due, since = clock_timestamp(), version = DEFAULT
), letters AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
                                     dedupe_key, event_type, aggregate_type, aggregate_id, topic, error_reason,
                                     error_detail, payload_json, headers)
    SELECT seq, id, created_at, attempt_count, next = 4, namespace, tenant_id, dedupe_key, event_type,
           aggregate_type, aggregate_id, nullif(topic, ''), reason, detail, payload_json, headers
      FROM settled WHERE next IN (4, 5) ORDER BY seq
), tries AS MATERIALIZED ( -- after those that the event has had
    SELECT s.id, s.tried, s.tried_on, coalesce(nullif(s.detail, ''), s.reason) AS error, 1 + coalesce((
               SELECT a.number FROM {schema}.outbox_attempts a WHERE a.event_id = s.id
                ORDER BY a.number DESC LIMIT 1), 0) AS number
      FROM settled s WHERE s.tried <> ''
), told AS (
    INSERT INTO {schema}.outbox_attempts (event_id, number, relay, class, topic, error)
    SELECT id, number, $1::uuid, tried, tried_on, error FROM tries
    ON CONFLICT (event_id, number) DO NOTHING -- history must not stop the lane
), forgotten AS ( -- the first 5 and the last 15 are kept
    DELETE FROM {schema}.outbox_attempts a USING tries t
     WHERE a.event_id = t.id AND a.number > 5 AND a.number <= t.number - 15
), cleared AS (
    DELETE FROM {schema}.outbox_markers m WHERE m.layout = 1 AND m.lane = ANY($15::smallint[]) AND (SELECT ok FROM mine)
), recovered AS (
    UPDATE {schema}.outbox_lanes l SET crash_count = 0
     WHERE l.layout = 1 AND l.lane = ANY($15::smallint[]) AND l.crash_count > 0 AND (SELECT ok FROM mine)
)
SELECT (SELECT ok FROM mine),
       ARRAY(SELECT l.lane FROM own CROSS JOIN unnest(own.lanes) l(lane) WHERE l.lane = ANY($3::smallint[])),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       ARRAY(SELECT a.number FROM asked a WHERE a.next NOT IN (3, 6) EXCEPT SELECT number FROM settled ORDER BY 1)
