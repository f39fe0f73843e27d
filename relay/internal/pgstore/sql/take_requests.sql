-- $1 lanes, $2 relay, $3 its token, $4 event types that may go, $5 those that go only to a topic which their request
-- names, $6 topics to which nothing goes by name, $7 how many of each lane, $8 at how many of each to look, $9 bytes;
-- $10 and $11 topics by lane to which nothing goes by name, as others are in memory, and $12 and $13 their types; $14
-- requests that the relay has in memory.
--
-- The order within an action and aggregate is kept: what comes behind a type that may not go stays. One that was taken
-- three times by relays that did not come back is taken when it is the first of its lane, and then alone, with nothing
-- of other lanes beside it. Rows are locked by lane, number of the event and id, as
-- everywhere; one that somebody has ended meanwhile is left out. One whose event retention took in the moment in which
-- it was asked for has failed. What the relay has as the database says, neither in memory nor taken now, comes along as
-- taken 0 times and without its payload; it stays as it is. The version of a request is the transaction that changed it
-- last. Behind the requests come the types that may not go.
WITH own AS MATERIALIZED (
    SELECT r.lanes FROM {schema}.outbox_relays r
     WHERE r.id = $2::uuid AND r.token = $3::uuid AND r.ended_at IS NULL FOR KEY SHARE
), looked AS MATERIALIZED (
    SELECT l.number, q.*, e.event_type, e.event_type = ANY($4::text[]) AS known,
           bool_or(e.event_type <> ALL($4::text[])) OVER (
               PARTITION BY q.lane, q.action_id, e.namespace, e.aggregate_type, e.aggregate_id
                   ORDER BY q.event_seq, q.id) AS behind
      FROM own CROSS JOIN unnest($1::smallint[]) WITH ORDINALITY l(lane, number)
     CROSS JOIN LATERAL (
        SELECT r.lane, r.event_seq, r.id, r.action_id, r.topic, r.taken, r.taken_by, r.attempts,
               r.xmin::text::bigint AS version
          FROM {schema}.outbox_requests r
         WHERE r.lane = l.lane AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
           AND r.due_at <= (SELECT clock_timestamp())
         ORDER BY r.event_seq, r.id LIMIT (SELECT $8::integer)) q
      LEFT JOIN LATERAL (
        SELECT * FROM {schema}.outbox_events e WHERE e.lane = q.lane AND e.seq = q.event_seq LIMIT (SELECT 1)) e ON true
     WHERE l.lane = ANY(own.lanes)
), gone AS (
    UPDATE {schema}.outbox_requests r
       SET failed_at = clock_timestamp(), last_error = 'the event is not in the outbox any more', taken_by = NULL,
           taken = 0
      FROM looked k WHERE k.event_type IS NULL AND r.id = k.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL
), able AS (
    SELECT k.*, row_number() OVER lane AS place, count(*) FILTER (WHERE k.taken >= 3) OVER lane AS suspicious
      FROM looked k
     WHERE NOT k.behind
       AND CASE WHEN k.topic IS NULL THEN k.event_type <> ALL($5::text[])
                     AND (k.lane, k.event_type) NOT IN (SELECT * FROM unnest($12::smallint[], $13::text[]))
                ELSE k.topic <> ALL($6::text[])
                     AND (k.lane, k.topic) NOT IN (SELECT * FROM unnest($10::smallint[], $11::text[])) END
    WINDOW lane AS (PARTITION BY k.lane ORDER BY k.event_seq, k.id)
), alone AS MATERIALIZED (
    SELECT a.id FROM able a WHERE a.place = 1 AND a.suspicious > 0 ORDER BY a.number LIMIT 1
), weighed AS MATERIALIZED ( -- else it may be run once more for each request: nobody knows how many those are
    SELECT a.*, row_number() OVER every AS nth,
           sum(256 + octet_length(e.payload_json::text) + coalesce(octet_length(e.headers::text), 0)) OVER every
               AS bytes
      FROM able a
     CROSS JOIN LATERAL (
        SELECT * FROM {schema}.outbox_events e WHERE e.lane = a.lane AND e.seq = a.event_seq LIMIT (SELECT 1)) e
     WHERE a.place <= $7::integer
       AND CASE WHEN EXISTS (SELECT FROM alone) THEN a.id = (SELECT o.id FROM alone o) ELSE a.suspicious = 0 END
    WINDOW every AS (ORDER BY a.number, a.place)
), locked AS MATERIALIZED (
    SELECT r.id FROM {schema}.outbox_requests r
     WHERE r.id = ANY (ARRAY(SELECT w.id FROM weighed w WHERE w.nth = 1 OR w.bytes <= $9::bigint))
       AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
     ORDER BY r.lane, r.event_seq, r.id FOR UPDATE OF r
), taken AS (
    UPDATE {schema}.outbox_requests r
       SET taken = r.taken + 1,
           taken_by = (SELECT l.token FROM {schema}.outbox_lanes l WHERE l.lane = r.lane ORDER BY l.layout LIMIT 1)
     WHERE r.id = ANY (ARRAY(SELECT l.id FROM locked l))
    RETURNING r.id, r.lane, r.event_seq, r.action_id, r.topic, r.taken, r.attempts, r.xmin::text::bigint AS version
), forgotten AS (
    SELECT k.id, k.lane, k.event_seq, k.action_id, k.topic, 0 AS taken, k.attempts, k.version FROM looked k
     WHERE k.taken_by IS NOT NULL AND k.event_type IS NOT NULL AND k.id <> ALL($14::bigint[])
       AND k.id NOT IN (SELECT l.id FROM locked l)
       AND k.taken_by = (SELECT l.token FROM {schema}.outbox_lanes l WHERE l.lane = k.lane ORDER BY l.layout LIMIT 1)
)
SELECT {incarnation} AS incarnation, {lost} AS lost, f.*
  FROM (SELECT) one LEFT JOIN (
    SELECT e.lane, e.seq, e.id, e.state, e.attempt_count, e.created_at, NULL::bigint AS due_in, e.namespace,
           e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id, e.dedupe_key,
           CASE WHEN t.taken > 0 THEN e.payload_json END AS payload_json,
           CASE WHEN t.taken > 0 THEN e.headers END AS headers,
           e.lane <> {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) AS stray,
           t.id AS request, t.action_id, t.topic, t.taken, t.attempts, t.version,
           row_number() OVER (ORDER BY array_position($1::smallint[], t.lane), t.event_seq, t.id) AS nth
      FROM (SELECT * FROM taken UNION ALL SELECT * FROM forgotten) t
     CROSS JOIN LATERAL (
        SELECT * FROM {schema}.outbox_events e WHERE e.lane = t.lane AND e.seq = t.event_seq LIMIT (SELECT 1)) e
    UNION ALL
    SELECT k.lane, NULL::bigint, NULL::uuid, NULL::smallint, NULL::integer, NULL::timestamptz, NULL::bigint,
           NULL, k.event_type, NULL, NULL, NULL, NULL, NULL::json, NULL::json, NULL::boolean, NULL::bigint, NULL::uuid,
           NULL, NULL::integer, NULL::integer, NULL::bigint, NULL::bigint
      FROM (SELECT DISTINCT k.lane, k.event_type FROM looked k WHERE NOT k.known) k
) f ON true ORDER BY f.nth, f.lane, f.event_type
