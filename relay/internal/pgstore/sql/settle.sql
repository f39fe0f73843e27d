-- $1 and $2 lanes and tokens; $3 published; $4-$9 retry: id, attempts, delay in microseconds, error, and state and time
-- as they were read; $10 wait; $11-$14 park: id, error, and state and time as they were read; $15-$22 dead: id,
-- blocking, attempts, topic, reason, detail, and state and time as they were read; $23-$24 lanes and tokens whose note
-- is cleared.
--
-- The lane rows are locked before anything is looked at: a sub-select would read a snapshot and let the settle of
-- a relay through whose lane is being taken over. A take-over passes over a locked lane, so this is one statement
-- that commits itself. Every change names the states that it starts from, which makes the second run of the same
-- settle change nothing. Operators redrive the dead and release the parked, and a settle that was given up may come
-- after that: what is charged, parked or dead is the row as it was read, at the time that it had. A dead letter is
-- written from the row that died, by the same statement: there is never one without the other. What was not as it had
-- been read is answered, because the relay knows nothing about it then. The sum keeps the planner from the index of
-- ready rows, which it takes for small after an ANALYZE at a quiet hour, and would read as a whole. States: 0 ready, 1
-- retrying, 2 parked, 3 waiting, 4 dead and blocking, 5 dead, 6 published.
WITH own AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l
      JOIN unnest($1::smallint[], $2::uuid[]) t(lane, token) ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR KEY SHARE OF l
), held AS MATERIALIZED (
    SELECT count(*) = cardinality($1::smallint[]) AS ok FROM own
), published AS (
    UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()
     WHERE id = ANY($3::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held)
), retrying AS (
    UPDATE {schema}.outbox_events e
       SET state = 1, attempt_count = r.attempts,
           next_attempt_at = clock_timestamp() + r.delay * interval '1 microsecond', last_error = r.error
      FROM unnest($4::uuid[], $5::integer[], $6::bigint[], $7::text[], $8::smallint[], $9::timestamptz[])
           r(id, attempts, delay, error, state, at)
     WHERE e.id = ANY($4::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state <> 1 OR e.next_attempt_at = r.at)
    RETURNING e.id
), waiting AS (
    UPDATE {schema}.outbox_events SET state = 3 WHERE id = ANY($10::uuid[]) AND state + 0 = 0 AND (SELECT ok FROM held)
), parked AS (
    UPDATE {schema}.outbox_events e SET state = 2, next_attempt_at = clock_timestamp(), last_error = r.error
      FROM unnest($11::uuid[], $12::text[], $13::smallint[], $14::timestamptz[]) r(id, error, state, at)
     WHERE e.id = ANY($11::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state <> 1 OR e.next_attempt_at = r.at)
    RETURNING e.id
), dead AS (
    UPDATE {schema}.outbox_events e
       SET state = CASE WHEN r.blocking THEN 4 ELSE 5 END, attempt_count = r.attempts,
           last_error = coalesce(nullif(r.detail, ''), r.reason)
      FROM unnest($15::uuid[], $16::boolean[], $17::integer[], $18::text[], $19::text[], $20::text[], $21::smallint[],
           $22::timestamptz[])
           r(id, blocking, attempts, topic, reason, detail, state, at)
     WHERE e.id = ANY($15::uuid[]) AND e.id = r.id AND e.state IN (0, 1, 2, 3) AND (SELECT ok FROM held)
       AND e.state = r.state AND (e.state NOT IN (1, 2) OR e.next_attempt_at = r.at)
    RETURNING e.seq, e.id, e.created_at, e.attempt_count, r.blocking, e.namespace, e.tenant_id, e.dedupe_key,
              e.event_type, e.aggregate_type, e.aggregate_id, r.topic, r.reason, r.detail, e.payload_json, e.headers
), letters AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id,
                                     dedupe_key, event_type, aggregate_type, aggregate_id, topic, error_reason,
                                     error_detail, payload_json, headers)
    SELECT seq, id, created_at, attempt_count, blocking, namespace, tenant_id, dedupe_key, event_type,
           aggregate_type, aggregate_id, nullif(topic, ''), reason, detail, payload_json, headers FROM dead ORDER BY seq
), noted AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l
      JOIN unnest($23::smallint[], $24::uuid[]) t(lane, token) ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 AND (SELECT ok FROM held) ORDER BY l.lane FOR NO KEY UPDATE OF l
), cleared AS (
    UPDATE {schema}.outbox_lanes l SET marked_event = NULL, marked_count = 0, crash_count = 0
      FROM noted WHERE l.layout = 1 AND l.lane = noted.lane
)
SELECT (SELECT ok FROM held), ARRAY(SELECT lane FROM own), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       ARRAY(SELECT unnest($4::uuid[] || $11::uuid[] || $15::uuid[])
             EXCEPT (SELECT id FROM retrying UNION ALL SELECT id FROM parked UNION ALL SELECT id FROM dead) ORDER BY 1)
