package schema

// The statements of the relay in the shapes that held in the experiments, with our names. The relay
// itself comes later: here they show that the tables, indexes and grants carry them.
const (
	takeOverSQL = `
WITH free AS MATERIALIZED (
    SELECT layout, lane FROM {schema}.outbox_lanes
     WHERE layout = 1 AND (lease_until IS NULL OR lease_until < clock_timestamp())
     ORDER BY lane LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.outbox_lanes l
   SET owner = $2, token = $3, acquired_at = clock_timestamp(), lease_until = clock_timestamp() + $4 * interval '1 ms',
       crash_count = crash_count + (l.owner IS NOT NULL)::integer
  FROM free WHERE (l.layout, l.lane) = (free.layout, free.lane)
RETURNING l.lane, l.floor`

	renewSQL = `
UPDATE {schema}.outbox_lanes l
   SET lease_until = clock_timestamp() + $4 * interval '1 ms', floor = greatest(l.floor, t.floor),
       crash_count = CASE WHEN t.floor > l.floor THEN 0 ELSE l.crash_count END
  FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) t(lane, token, floor)
 WHERE l.layout = 1 AND l.lane = t.lane AND l.token = t.token
RETURNING l.lane`

	releaseSQL = `UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL WHERE layout = 1 AND token = $1`

	// $1 and $2: lanes and tokens; $3: published; $4: dead.
	settleSQL = `
WITH own AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l JOIN unnest($1::smallint[], $2::uuid[]) t(lane, token) ON l.lane = t.lane AND l.token = t.token
     WHERE l.layout = 1 ORDER BY l.lane FOR KEY SHARE OF l
), held AS MATERIALIZED (
    SELECT count(*) = cardinality($1::smallint[]) AS ok FROM own
), published AS (
    UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp()
     WHERE id = ANY($3::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held) RETURNING id
), dead AS (
    UPDATE {schema}.outbox_events SET state = 4, attempt_count = attempt_count + 1, last_error = 'rejected'
     WHERE id = ANY($4::uuid[]) AND state IN (0, 1, 3) AND (SELECT ok FROM held)
    RETURNING seq, id, created_at, attempt_count, namespace, tenant_id, dedupe_key, event_type, aggregate_type, aggregate_id, payload_json, headers
), letters AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id, dedupe_key, event_type,
                                     aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, headers)
    SELECT seq, id, created_at, attempt_count, true, namespace, tenant_id, dedupe_key, event_type,
           aggregate_type, aggregate_id, 'orders', 'rejected', 'rejected', payload_json, headers FROM dead
    RETURNING 1
)
SELECT (SELECT ok FROM held), (SELECT count(*) FROM published), (SELECT count(*) FROM dead), (SELECT count(*) FROM letters)`

	fenceSequenceSQL = `SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END, pg_is_in_recovery() FROM {schema}.outbox_events_seq_seq`

	fenceWritersSQL = `
WITH l AS MATERIALIZED (SELECT locktype, relation, database, mode, virtualtransaction v, transactionid FROM pg_locks WHERE granted)
SELECT r.v, coalesce(t.transactionid::text, ''), pg_snapshot_xmax(pg_current_snapshot())::text
  FROM l r LEFT JOIN l t ON t.v = r.v AND t.locktype = 'transactionid' AND t.mode = 'ExclusiveLock'
 WHERE r.locktype = 'relation' AND r.relation = '{schema}.outbox_events_seq_seq'::regclass AND r.mode = 'RowExclusiveLock'
   AND r.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

	barrierSQL = `SELECT pg_logical_emit_message(true, 'posthaste', '')`

	// $1 lanes, $2 watermark and $3 cursor per lane, $4 limit per lane, $5 and $6 open writers as xid and low.
	readSQL = `
WITH g AS MATERIALIZED (
    SELECT coalesce(array_agg(x), '{}') AS gone, min(low) AS lo FROM unnest($5::bigint[], $6::bigint[]) t(x, low)
     WHERE pg_visible_in_snapshot(x::text::xid8, pg_current_snapshot())
)
SELECT NULL::smallint AS lane, NULL::bigint AS seq, NULL::uuid AS id, NULL::text AS event_type, NULL::json AS payload_json, gone FROM g
UNION ALL
SELECT e.*, NULL FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::integer[]) l(lane, w, c, lim)
 CROSS JOIN LATERAL (
    SELECT l.lane, o.seq, o.id, o.event_type, o.payload_json FROM {schema}.outbox_events o
     WHERE {schema}.outbox_lane(o.namespace, o.aggregate_type, o.aggregate_id) = l.lane AND o.state = 0
       AND o.seq > greatest(l.w, least(l.c, (SELECT lo FROM g)))
     ORDER BY o.seq LIMIT l.lim
) e`

	// The held rows of one aggregate, in order.
	heldSQL = `
SELECT seq, id, state, next_attempt_at FROM {schema}.outbox_events
 WHERE {schema}.outbox_lane(namespace, aggregate_type, aggregate_id) = {schema}.outbox_lane($1, $2, $3)
   AND namespace = $1 AND aggregate_type = $2 AND aggregate_id = $3 AND state IN (1, 2, 3, 4)
 ORDER BY seq LIMIT 100`

	// The retries of one lane that are due. The time is asked once: clock_timestamp() in the condition itself
	// is asked for every row, and then no index can serve it.
	dueSQL = `
SELECT seq, id FROM {schema}.outbox_events
 WHERE {schema}.outbox_lane(namespace, aggregate_type, aggregate_id) = $1::smallint AND state = 1 AND next_attempt_at <= (SELECT clock_timestamp())
 ORDER BY next_attempt_at, seq LIMIT 100`

	// A new owner's first look: the aggregates of a lane that hold something back, jumping from one to the next.
	heldAggregatesSQL = `
WITH RECURSIVE heads AS (
    (SELECT namespace, aggregate_type, aggregate_id FROM {schema}.outbox_events
      WHERE {schema}.outbox_lane(namespace, aggregate_type, aggregate_id) = $1::smallint AND state IN (1, 2, 3, 4)
      ORDER BY namespace, aggregate_type, aggregate_id LIMIT 1)
    UNION ALL
    SELECT n.* FROM heads h CROSS JOIN LATERAL (
        SELECT e.namespace, e.aggregate_type, e.aggregate_id FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = $1::smallint AND e.state IN (1, 2, 3, 4)
           AND (e.namespace, e.aggregate_type, e.aggregate_id) > (h.namespace, h.aggregate_type, h.aggregate_id)
         ORDER BY e.namespace, e.aggregate_type, e.aggregate_id LIMIT 1) n
)
SELECT * FROM heads`

	requestsSQL = `
SELECT id, event_id FROM {schema}.outbox_requests
 WHERE layout = 1 AND lane = $1::smallint AND delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL
 ORDER BY event_seq LIMIT 100`

	// The janitor's. An array of ids and not a join: joined, the planner hashes the whole table.
	retentionSQL = `
DELETE FROM {schema}.outbox_events WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.outbox_events e WHERE published_at < $1
       AND NOT EXISTS (SELECT FROM {schema}.outbox_requests r WHERE r.event_id = e.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL)
     ORDER BY published_at LIMIT 500))`

	dedupeRetentionSQL = `
DELETE FROM {schema}.outbox_dedupe
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.outbox_dedupe WHERE created_at < $1 ORDER BY created_at LIMIT 500))`

	deadLetterRetentionSQL = `
DELETE FROM {schema}.outbox_dlq d
 WHERE EXISTS (SELECT FROM {schema}.outbox_actions a WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue') AND a.acted_at < $1)`
)
