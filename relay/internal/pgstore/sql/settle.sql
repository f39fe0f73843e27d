-- $1 relay, $2 its token, $3 lanes of the batch; $4 published; $5-$10 retry: id, attempts, delay in microseconds,
-- error, and state and time as they were read; $11 wait; $12-$15 park: id, error, and state and time as they were read;
-- $16-$23 dead: id, blocking, attempts, topic, reason, detail, and state and time as they were read; $24 lanes whose
-- marker is cleared.
--
-- The relay's row is locked before anything is looked at, and asked for the lanes as it is then: a sub-select would
-- read a snapshot and let the settle of a relay through whose lane is being given away. Who ends the relay passes over
-- the locked row, so this is one statement that commits itself. Every change names the states that it starts from,
-- which makes the second run of the same settle change nothing. Operators redrive the dead and release the parked, and
-- a settle that was given up may come after that: what is charged, parked or dead is the row as it was read, at the
-- time that it had. A dead letter is written from the row that died, by the same statement: there is never one without
-- the other. What was not as it had been read is answered, because the relay knows nothing about it then. The sum keeps
-- the planner from the index of ready rows, which it takes for small after an ANALYZE at a quiet hour, and would read
-- as a whole. States: 0 ready, 1 retrying, 2 parked, 3 waiting, 4 dead and blocking, 5 dead, 6 published.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $1::uuid AND r.token = $2::uuid AND r.ended_at IS NULL FOR KEY SHARE
), held AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[]) AS ok
), published AS (
    UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()
     WHERE id = ANY($4::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held)
), retrying AS (
    UPDATE {schema}.outbox_events e
       SET state = 1, attempt_count = r.attempts,
           next_attempt_at = clock_timestamp() + r.delay * interval '1 microsecond', last_error = r.error
      FROM unnest($5::uuid[], $6::integer[], $7::bigint[], $8::text[], $9::smallint[], $10::timestamptz[])
           r(id, attempts, delay, error, state, at)
     WHERE e.id = ANY($5::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state <> 1 OR e.next_attempt_at = r.at)
    RETURNING e.id
), waiting AS (
    UPDATE {schema}.outbox_events SET state = 3 WHERE id = ANY($11::uuid[]) AND state + 0 = 0 AND (SELECT ok FROM held)
), parked AS (
    UPDATE {schema}.outbox_events e SET state = 2, next_attempt_at = clock_timestamp(), last_error = r.error
      FROM unnest($12::uuid[], $13::text[], $14::smallint[], $15::timestamptz[]) r(id, error, state, at)
     WHERE e.id = ANY($12::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state <> 1 OR e.next_attempt_at = r.at)
    RETURNING e.id
), dead AS (
    UPDATE {schema}.outbox_events e
       SET state = CASE WHEN r.blocking THEN 4 ELSE 5 END, attempt_count = r.attempts,
           last_error = coalesce(nullif(r.detail, ''), r.reason)
      FROM unnest($16::uuid[], $17::boolean[], $18::integer[], $19::text[], $20::text[], $21::text[], $22::smallint[],
           $23::timestamptz[])
           r(id, blocking, attempts, topic, reason, detail, state, at)
     WHERE e.id = ANY($16::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 2, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state NOT IN (1, 2) OR e.next_attempt_at = r.at)
    RETURNING e.seq, e.id, e.created_at, e.attempt_count, r.blocking, e.namespace, e.tenant_id, e.dedupe_key,
              e.event_type, e.aggregate_type, e.aggregate_id, r.topic, r.reason, r.detail, e.payload_json, e.headers
), letters AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
                                     dedupe_key, event_type, aggregate_type, aggregate_id, topic, error_reason,
                                     error_detail, payload_json, headers)
    SELECT seq, id, created_at, attempt_count, blocking, namespace, tenant_id, dedupe_key, event_type,
           aggregate_type, aggregate_id, nullif(topic, ''), reason, detail, payload_json, headers FROM dead ORDER BY seq
), cleared AS (
    DELETE FROM {schema}.outbox_markers m WHERE m.layout = 1 AND m.lane = ANY($24::smallint[]) AND (SELECT ok FROM held)
), calm AS (
    UPDATE {schema}.outbox_lanes l SET crash_count = 0
     WHERE l.layout = 1 AND l.lane = ANY($24::smallint[]) AND l.crash_count > 0 AND (SELECT ok FROM held)
)
SELECT (SELECT ok FROM held),
       ARRAY(SELECT l.lane FROM own CROSS JOIN unnest(own.lanes) l(lane) WHERE l.lane = ANY($3::smallint[])),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       ARRAY(SELECT unnest($5::uuid[] || $12::uuid[] || $16::uuid[])
             EXCEPT (SELECT id FROM retrying UNION ALL SELECT id FROM parked UNION ALL SELECT id FROM dead) ORDER BY 1)
