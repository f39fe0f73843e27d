package schema

// parts are the columns of the matrix. A stranger may enter the schema, as everyone may enter public,
// and was granted nothing.
var parts = []string{"producer", "relay", "janitor", "viewer", "operator", "reader", "stranger"}

// An operation is a row of the matrix: who may do it. Everyone else is denied, with SQLSTATE 42501.
type operation struct {
	name string
	sql  string
	may  string // parts, or "everyone"
	// guarded are the parts whose grants allow it and whom a trigger refuses, with SQLSTATE 23001.
	guarded string
}

const (
	readers = "relay janitor viewer operator"
	granted = "producer relay janitor viewer operator"

	insertColumns = `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json`
	insertValues  = `VALUES ('{new}', 'order_created', 'order', '1', '{"eventId":"{new}"}'`

	insertHeld = "INSERT INTO {schema}.outbox_held (lane, seq, kind, due, since, namespace, event_type, aggregate_type, " +
		"aggregate_id)"
	// lockHeld is how everybody begins who changes a held event.
	lockHeld = "SELECT lane, seq, version FROM {schema}.outbox_held WHERE kind = 4 ORDER BY lane, seq FOR UPDATE"
)

// operations is the matrix. {ready}, {published} and so on are ids of rows in that state; {new} is an id
// that no row has.
var operations = []operation{
	// Writing events.
	{
		name: "emit", sql: "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', headers => '{\"a\":\"b\"}', " +
			"actor => '{\"type\":\"user\",\"id\":\"1\"}')", may: "producer",
	},
	{
		name: "emit with a key, twice", sql: "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key " +
			"=> 'k'); SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')", may: "producer",
	},
	{
		name: "emit several, one with a key", sql: "SELECT {schema}.outbox_emit_all_or_none(ARRAY['{new}']::uuid[], " +
			"'{default}', '{order_created}', '{order}', '{1}', '{NULL}', '{k}', ARRAY['x']::bytea[], '{f}', " +
			"ARRAY['{\"eventId\":\"{new}\"}'], '{NULL}')", may: "producer",
	},
	{
		name: "emit one with a key", sql: "SELECT {schema}.outbox_emit_deduped(ARRAY['{new}']::uuid[], '{default}', " +
			"'{order_created}', '{order}', '{1}', '{NULL}', '{k}', ARRAY['x']::bytea[], '{f}', " +
			"ARRAY['{\"eventId\":\"{new}\"}'], '{NULL}')", may: "producer",
	},
	{
		name: "insert an event", sql: insertColumns + ", namespace, tenant_id, dedupe_key, headers) " + insertValues +
			", 'default', NULL, NULL, NULL)", may: "producer",
	},
	{
		name: "insert an event, returning a constant", sql: insertColumns + ") " + insertValues + ") RETURNING '1'",
		may: "producer",
	},
	{
		name: "insert an event with its lane",
		sql:  insertColumns + ", lane) " + insertValues + ", {schema}.outbox_lane('default', 'order', '1'))", may: "producer",
	},
	{name: "insert an event, returning it", sql: insertColumns + ") " + insertValues + ") RETURNING id"},
	{name: "insert an event with its state", sql: insertColumns + ", state) " + insertValues + ", 0)"},
	{name: "insert an event as published", sql: insertColumns + ", state, published_at) " + insertValues + ", 6, now())"},
	{name: "insert an event with its time", sql: insertColumns + ", created_at) " + insertValues + ", now())"},
	{
		name: "insert an event with attempts",
		sql:  insertColumns + ", attempt_count, last_error) " + insertValues + ", 0, '')",
	},
	{
		name: "insert an event with its number",
		sql:  insertColumns + ", seq) OVERRIDING SYSTEM VALUE " + insertValues + ", 1)",
	},

	// Reading events.
	{
		name: "read ids and states",
		sql:  "SELECT lane, seq, id, state, published_at, created_at FROM {schema}.outbox_events", may: readers,
	},
	{
		name: "read types and aggregates",
		sql:  "SELECT namespace, event_type, aggregate_type, aggregate_id, tenant_id FROM {schema}.outbox_events",
		may:  "relay viewer operator",
	},
	{
		name: "read attempts and errors",
		sql:  "SELECT attempt_count, last_error FROM {schema}.outbox_events", may: "relay viewer operator",
	},
	{name: "read payloads", sql: "SELECT payload_json FROM {schema}.outbox_events", may: "relay"},
	{name: "read headers", sql: "SELECT headers FROM {schema}.outbox_events", may: "relay"},
	{name: "read dedupe keys of events", sql: "SELECT dedupe_key FROM {schema}.outbox_events", may: "relay"},
	{name: "read everything of events", sql: "SELECT * FROM {schema}.outbox_events", may: "relay"},
	{
		name: "read what is ready in a lane",
		sql:  "SELECT seq FROM {schema}.outbox_events WHERE lane = 1 AND seq > 0 AND state = 0", may: readers,
	},
	{name: "read the status view", sql: "SELECT * FROM {schema}.outbox_status", may: "viewer operator"},

	// Changing events.
	{
		name: "settle as published",
		sql:  "UPDATE {schema}.outbox_events SET state = 6, published_at = clock_timestamp() WHERE id = '{ready}'",
		may:  "relay",
	},
	{
		name: "settle as retrying", sql: "WITH e AS (UPDATE {schema}.outbox_events SET state = 1, attempt_count = 1, " +
			"last_error = 'x' WHERE id = '{ready}' RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id) " +
			insertHeld + " SELECT lane, seq, 1, now(), now(), namespace, event_type, aggregate_type, aggregate_id FROM e",
		may: "relay",
	},
	{
		name: "redrive by hand",
		sql: "WITH h AS MATERIALIZED (" + lockHeld + "), kept AS (UPDATE {schema}.outbox_held k SET kind = " +
			"1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT FROM h WHERE k.lane = h.lane AND " +
			"k.seq = h.seq) UPDATE {schema}.outbox_events e SET attempt_count = 0 FROM h " +
			"WHERE e.lane = h.lane AND e.seq = h.seq",
		may: "relay",
	},
	{
		name: "discard by hand",
		sql: "WITH h AS MATERIALIZED (" + lockHeld + "), gone AS (DELETE FROM {schema}.outbox_held g USING " +
			"h WHERE g.lane = h.lane AND g.seq = h.seq) UPDATE {schema}.outbox_events e SET state = 7 FROM h WHERE e.lane = " +
			"h.lane AND e.seq = h.seq", may: "relay",
	},
	{
		name: "redrive by hand what does not block",
		sql: "WITH e AS (UPDATE {schema}.outbox_events SET state = 1, attempt_count = 0 " +
			"WHERE id = '{passed}' RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id) " + insertHeld +
			" SELECT lane, seq, 1, now(), now(), namespace, event_type, aggregate_type, aggregate_id FROM e",
		may: "relay",
	},
	{
		name: "discard what is ready", sql: "UPDATE {schema}.outbox_events SET state = 7 WHERE id = '{ready}'",
		may: "relay",
	},
	{
		name: "change published_at", sql: "UPDATE {schema}.outbox_events SET published_at = now() WHERE id = '{published}'",
		may: "relay",
	},
	{
		name: "change last_error", sql: "UPDATE {schema}.outbox_events SET last_error = 'x' WHERE id = '{ready}'",
		may: "relay",
	},
	{name: "change a payload", sql: "UPDATE {schema}.outbox_events SET payload_json = '{}' WHERE id = '{ready}'"},
	{name: "erase a payload by hand", sql: "UPDATE {schema}.outbox_events SET payload_json = '{}' WHERE state = 6"},
	{name: "erase headers by hand", sql: "UPDATE {schema}.outbox_events SET headers = NULL WHERE state = 6"},
	{name: "erase a dead letter by hand", sql: "UPDATE {schema}.outbox_dlq SET payload_json = '{}', headers = NULL"},
	{name: "give leave to erase", sql: "UPDATE {schema}.outbox_meta SET erasing = pg_current_xact_id()"},
	{
		name: "erase by outbox_erase", sql: "SELECT {schema}.outbox_erase('me', 'why', '{{published}, {discarded}, {dead}}')",
		may: "operator",
	},
	{
		name: "erase more than the function does", sql: "SELECT {schema}.outbox_erase('me', 'why', '{{discarded}}'); " +
			"UPDATE {schema}.outbox_events SET payload_json = '{}'",
	},
	{name: "call outbox_erasing", sql: "SELECT {schema}.outbox_erasing()"},
	{name: "call outbox_tombstone", sql: "SELECT {schema}.outbox_tombstone('{}', NULL, '{new}')"},
	{name: "change headers", sql: "UPDATE {schema}.outbox_events SET headers = '{}' WHERE id = '{ready}'"},
	{name: "change an id", sql: "UPDATE {schema}.outbox_events SET id = '{new}' WHERE id = '{ready}'"},
	{name: "change a time", sql: "UPDATE {schema}.outbox_events SET created_at = now() WHERE id = '{ready}'"},
	{name: "change an aggregate", sql: "UPDATE {schema}.outbox_events SET aggregate_id = '2' WHERE id = '{ready}'"},
	{name: "change a lane", sql: "UPDATE {schema}.outbox_events SET lane = 2 WHERE id = '{ready}'"},
	{name: "change a number", sql: "UPDATE {schema}.outbox_events SET seq = DEFAULT WHERE id = '{ready}'"},
	{name: "delete a published event", sql: "DELETE FROM {schema}.outbox_events WHERE id = '{published}'", may: "janitor"},
	{name: "delete a discarded event", sql: "DELETE FROM {schema}.outbox_events WHERE id = '{discarded}'", may: "janitor"},
	{name: "delete a ready event", sql: "DELETE FROM {schema}.outbox_events WHERE id = '{ready}'", guarded: "janitor"},
	{name: "delete a dead event", sql: "DELETE FROM {schema}.outbox_events WHERE id = '{passed}'", guarded: "janitor"},
	{name: "delete a held event", sql: "DELETE FROM {schema}.outbox_events WHERE id = '{dead}'", guarded: "janitor"},
	{
		name: "delete by retention", sql: "DELETE FROM {schema}.outbox_events e USING (SELECT lane, seq FROM " +
			"{schema}.outbox_events WHERE lane = 49 AND seq > 0 AND state = 6 AND published_at < now() ORDER BY lane, seq " +
			"LIMIT 9) old WHERE e.lane = old.lane AND e.seq = old.seq", may: "janitor",
	},
	{name: "truncate events", sql: "TRUNCATE {schema}.outbox_events"},
	{
		name: "put a trigger on events",
		sql: "CREATE TRIGGER t BEFORE INSERT ON {schema}.outbox_events EXECUTE FUNCTION " +
			"suppress_redundant_updates_trigger()",
	},
	{name: "alter events", sql: "ALTER TABLE {schema}.outbox_events DISABLE TRIGGER ALL"},
	{name: "drop events", sql: "DROP TABLE {schema}.outbox_events CASCADE"},

	// What is held.
	{
		name: "read what is held",
		sql: "SELECT lane, seq, kind, due, since, version, namespace, event_type, aggregate_type, " +
			"aggregate_id FROM {schema}.outbox_held", may: "relay viewer operator",
	},
	{name: "lock what is held", sql: lockHeld, may: "relay"},
	{
		name: "hold an event", sql: insertHeld + " VALUES (1, 999, 1, now(), now(), 'n', 't', 'a', '1')", may: "relay",
	},
	{
		name: "hold it in another way", sql: "UPDATE {schema}.outbox_held SET kind = 3, due = NULL, since = now(), " +
			"version = DEFAULT", may: "relay",
	},
	{name: "let go of what is held", sql: "DELETE FROM {schema}.outbox_held", may: "relay"},
	{name: "change the number of what is held", sql: "UPDATE {schema}.outbox_held SET seq = 7"},
	{name: "change the lane of what is held", sql: "UPDATE {schema}.outbox_held SET lane = 7"},
	{name: "change the aggregate of what is held", sql: "UPDATE {schema}.outbox_held SET aggregate_id = '2'"},
	{name: "truncate what is held", sql: "TRUNCATE {schema}.outbox_held"},

	// The sequence, and what else the watermark reads.
	{
		name: "read the sequence",
		sql:  "SELECT last_value, is_called, pg_is_in_recovery() FROM {schema}.outbox_events_seq_seq",
		may:  "relay viewer operator",
	},
	{name: "draw from the sequence", sql: "SELECT nextval('{schema}.outbox_events_seq_seq')"},
	{name: "set the sequence", sql: "SELECT setval('{schema}.outbox_events_seq_seq', 1)"},
	{
		name: "list open writers",
		sql:  "SELECT virtualtransaction, transactionid, pg_snapshot_xmax(pg_current_snapshot()) FROM pg_locks WHERE granted",
		may:  "everyone",
	},
	{
		name: "commit barrier",
		sql:  "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'posthaste', '')",
		may:  "everyone",
	},
	{
		name: "ask a snapshot", sql: "SELECT pg_visible_in_snapshot('3', pg_current_snapshot()), pg_postmaster_start_time()",
		may: "everyone",
	},

	// Dedupe keys.
	{
		name: "read dedupe keys",
		sql:  "SELECT namespace, event_type, tenant_id, dedupe_key, event_id, content_hash FROM {schema}.outbox_dedupe",
		may:  "producer",
	},
	{name: "read the age of keys", sql: "SELECT event_id, created_at FROM {schema}.outbox_dedupe", may: "janitor"},
	{name: "give a key to another event", sql: "UPDATE {schema}.outbox_dedupe SET event_id = '{new}'"},
	{name: "change a key's content", sql: "UPDATE {schema}.outbox_dedupe SET content_hash = 'x'"},
	{name: "make a key younger", sql: "UPDATE {schema}.outbox_dedupe SET created_at = now()"},
	{
		name: "lock a key", sql: "SELECT event_id FROM {schema}.outbox_dedupe FOR UPDATE SKIP LOCKED",
		may: "producer janitor",
	},
	{
		name: "delete old keys", sql: "DELETE FROM {schema}.outbox_dedupe WHERE ctid = ANY (ARRAY(SELECT ctid FROM " +
			"{schema}.outbox_dedupe WHERE created_at < now() ORDER BY created_at LIMIT 9))", may: "janitor",
	},
	{name: "truncate keys", sql: "TRUNCATE {schema}.outbox_dedupe"},

	// Lanes and relays.
	{
		name: "read lanes", sql: "SELECT layout, lane, owner, acquired_at, floor, swept, needs, crashed, crash_count FROM " +
			"{schema}.outbox_lanes", may: "relay viewer operator",
	},
	{name: "read which lanes there are", sql: "SELECT lane FROM {schema}.outbox_lanes", may: readers},
	{
		name: "read how lanes stand", sql: "SELECT * FROM {schema}.outbox_lane_status", may: "relay viewer operator",
	},
	{name: "read tokens of lanes", sql: "SELECT token FROM {schema}.outbox_lanes", may: "relay"},
	{
		name: "take a lane", sql: "WITH layout AS MATERIALIZED (SELECT FROM {schema}.outbox_meta FOR KEY SHARE), free AS " +
			"MATERIALIZED (SELECT lane FROM {schema}.outbox_lanes WHERE owner IS NULL AND EXISTS (SELECT FROM layout) FOR " +
			"UPDATE SKIP LOCKED) UPDATE {schema}.outbox_lanes l SET owner = '{new}', token = '{new}', acquired_at = now() " +
			"FROM free WHERE l.lane = free.lane", may: "relay",
	},
	{
		name: "move a floor",
		sql:  "UPDATE {schema}.outbox_lanes SET floor = 1, swept = 1, needs = '{}', crashed = true, crash_count = 0",
		may:  "relay",
	},
	{name: "renumber a lane", sql: "UPDATE {schema}.outbox_lanes SET lane = 99 WHERE lane = 1"},
	{name: "add a lane", sql: "INSERT INTO {schema}.outbox_lanes (layout, lane) VALUES (9, 9)"},
	{name: "delete lanes", sql: "DELETE FROM {schema}.outbox_lanes"},
	{name: "change the layout", sql: "UPDATE {schema}.outbox_meta SET lane_layout = 2"},
	{
		name: "read relays", sql: "SELECT id, name, version, started_at, ended_at, lanes FROM {schema}.outbox_relays",
		may: "relay viewer operator",
	},
	{name: "read tokens of relays", sql: "SELECT token FROM {schema}.outbox_relays", may: "relay"},
	{
		name: "register a relay",
		sql:  "INSERT INTO {schema}.outbox_relays (id, token, name, version) VALUES ('{new}', '{new}', 'r', 'v')",
		may:  "relay",
	},
	{
		name: "hold lanes in a settle", sql: "SELECT id FROM {schema}.outbox_relays WHERE lanes @> '{}' FOR KEY SHARE",
		may: "relay",
	},
	{name: "end a relay", sql: "UPDATE {schema}.outbox_relays SET lanes = '{}', ended_at = now()", may: "relay"},
	{name: "give a relay another token", sql: "UPDATE {schema}.outbox_relays SET token = '{new}'"},
	{name: "give a relay another name", sql: "UPDATE {schema}.outbox_relays SET name = 'other'"},
	{name: "end expired relays", sql: "SELECT {schema}.outbox_end_expired(NULL, 8, false)", may: "relay"},
	{name: "forget a relay", sql: "DELETE FROM {schema}.outbox_relays WHERE ended_at IS NOT NULL", may: "relay"},

	{name: "read beats", sql: "SELECT * FROM {schema}.outbox_beats", may: "relay viewer operator"},
	{
		name: "beat", sql: "INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered, " +
			"need_lanes, need_types) SELECT id, 9, now(), '{1}', '{1}', '{1}', '{t}', '{}', '{}' FROM {schema}.outbox_relays",
		may: "relay",
	},
	{name: "prolong a beat", sql: "UPDATE {schema}.outbox_beats SET until = now()"},
	{name: "delete old beats", sql: "DELETE FROM {schema}.outbox_beats WHERE number < 1", may: "relay"},
	{name: "read what relays know", sql: "SELECT * FROM {schema}.outbox_known", may: "relay viewer operator"},
	{
		name: "say what a relay knows", sql: "INSERT INTO {schema}.outbox_known (relay, event_type, topic) SELECT id, 't', " +
			"'orders' FROM {schema}.outbox_relays ON CONFLICT (relay, event_type) DO NOTHING", may: "relay",
	},
	{name: "change what a relay knows", sql: "UPDATE {schema}.outbox_known SET topic = 'other'"},
	{
		name: "read which event is sent alone", sql: "SELECT layout, lane, event_id, deaths FROM {schema}.outbox_markers",
		may: "relay viewer operator",
	},
	{name: "read tokens of markers", sql: "SELECT token FROM {schema}.outbox_markers", may: "relay"},
	{
		name: "mark an event", sql: "INSERT INTO {schema}.outbox_markers AS m (layout, lane, event_id, token) VALUES (1, " +
			"1, '{new}', '{new}') ON CONFLICT (layout, lane) DO UPDATE SET event_id = excluded.event_id, " +
			"token = excluded.token, deaths = m.deaths + 1", may: "relay",
	},
	{name: "move a marker", sql: "UPDATE {schema}.outbox_markers SET lane = 2"},
	{name: "take a marker away", sql: "DELETE FROM {schema}.outbox_markers", may: "relay"},

	{name: "read routes", sql: "SELECT * FROM {schema}.outbox_topics", may: "relay viewer operator"},
	{
		name: "pause a route", sql: "INSERT INTO {schema}.outbox_topics (relay, topic, paused, error) SELECT id, 'orders', " +
			"true, 'down' FROM {schema}.outbox_relays ON CONFLICT (relay, topic) DO UPDATE SET paused = true, changed_at = " +
			"now()", may: "relay",
	},
	{name: "forget routes", sql: "DELETE FROM {schema}.outbox_topics", may: "relay"},

	// Dead letters, actions, requests.
	{name: "read which events are dead letters", sql: "SELECT id, event_id FROM {schema}.outbox_dlq", may: readers},
	{
		name: "read why they died",
		sql:  "SELECT event_type, topic, error_reason, error_detail, attempts, failed_at FROM {schema}.outbox_dlq",
		may:  "viewer operator",
	},
	{name: "read payloads of dead letters", sql: "SELECT payload_json, headers FROM {schema}.outbox_dlq"},
	{
		name: "write a dead letter", sql: "INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, " +
			"blocking, namespace, event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, " +
			"headers) VALUES (1, '{new}', now(), 1, true, 'n', 't', 'a', '1', NULL, 'rejected', '', '{}', NULL) RETURNING 1",
		may: "relay",
	},
	{
		name: "write a dead letter with its time", sql: "INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, " +
			"attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, error_reason, payload_json, failed_at) " +
			"VALUES (1, '{new}', now(), 1, true, 'n', 't', 'a', '1', 'rejected', '{}', now())",
	},
	{name: "change a dead letter", sql: "UPDATE {schema}.outbox_dlq SET error_detail = ''"},
	{name: "delete a resolved dead letter", sql: "DELETE FROM {schema}.outbox_dlq WHERE id = {resolved}", may: "janitor"},
	{
		name: "delete an unresolved dead letter", sql: "DELETE FROM {schema}.outbox_dlq WHERE id = {unresolved}",
		guarded: "janitor",
	},
	{name: "read actions", sql: "SELECT * FROM {schema}.outbox_actions", may: readers},
	{
		name: "log an action", sql: "INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, " +
			"reason) VALUES ('{new}', 'discard', '{dead}', {unresolved}, 'me', 'why')",
	},
	{
		name: "log an action of another role", sql: "INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, " +
			"actor, session_role) VALUES ('{new}', 'discard', '{dead}', 'me', 'postgres')",
	},
	{
		name: "log an action with its time", sql: "INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor, " +
			"acted_at) VALUES ('{new}', 'discard', '{dead}', 'me', now())",
	},
	{name: "change an action", sql: "UPDATE {schema}.outbox_actions SET actor = 'them'"},
	{
		name: "delete an action whose dead letter is there",
		sql:  "DELETE FROM {schema}.outbox_actions WHERE dlq_id = {resolved}", guarded: "janitor",
	},
	{
		name: "read requests", sql: "SELECT id, action_id, event_id, lane, event_seq, topic, requested_at, due_at, taken, " +
			"delivered_at, canceled_at, failed_at, attempts, last_error FROM {schema}.outbox_requests",
		may: "relay viewer operator",
	},
	{
		name: "read which events are asked for", sql: "SELECT action_id, event_id FROM {schema}.outbox_requests WHERE " +
			"delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL", may: readers,
	},
	{name: "read tokens of lanes in requests", sql: "SELECT taken_by FROM {schema}.outbox_requests", may: "relay"},
	{
		name: "request a redelivery", sql: "INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor) VALUES " +
			"('{new}', 'redeliver', '{published}', 'me'); INSERT INTO {schema}.outbox_requests (action_id, event_id, " +
			"event_seq, lane) VALUES ('{new}', '{published}', 1, 1)",
	},
	{
		name: "request a redelivery under an action that is there", sql: "INSERT INTO {schema}.outbox_requests (action_id, " +
			"event_id, event_seq, lane) SELECT action_id, event_id, 1, 1 FROM {schema}.outbox_actions " +
			"WHERE verb = 'discard'",
	},
	{
		name: "finish a request", sql: "UPDATE {schema}.outbox_requests SET delivered_at = now(), attempts = 1, last_error " +
			"= NULL, taken = 0, taken_by = NULL WHERE delivered_at IS NULL", may: "relay",
	},
	{
		name: "fail a request", sql: "UPDATE {schema}.outbox_requests SET failed_at = now() WHERE delivered_at IS NULL",
		may: "relay",
	},
	{
		name: "cancel a request", sql: "UPDATE {schema}.outbox_requests SET canceled_at = now() WHERE delivered_at IS NULL",
	},
	{name: "put a request off", sql: "UPDATE {schema}.outbox_requests SET due_at = now() WHERE delivered_at IS NULL"},
	{name: "send a copy elsewhere", sql: "UPDATE {schema}.outbox_requests SET topic = 'mine'"},
	{name: "point a request elsewhere", sql: "UPDATE {schema}.outbox_requests SET event_id = '{new}'"},
	{
		name: "delete a closed request", sql: "DELETE FROM {schema}.outbox_requests WHERE delivered_at IS NOT NULL",
		may: "janitor",
	},
	{
		name: "delete an open request", sql: "DELETE FROM {schema}.outbox_requests WHERE delivered_at IS NULL",
		guarded: "janitor",
	},

	// The rest of the schema.
	{name: "read what retention did", sql: "SELECT * FROM {schema}.outbox_retention", may: "janitor viewer operator"},
	{
		name: "remember a retention",
		sql:  "UPDATE {schema}.outbox_retention SET cut_off = now(), ran_at = now(), deleted = 1, worker = NULL",
		may:  "janitor",
	},
	{name: "forget all retentions", sql: "DELETE FROM {schema}.outbox_retention"},
	{name: "read what was pruned", sql: "SELECT * FROM {schema}.outbox_pruned", may: "janitor viewer operator"},
	{
		name: "write down what was pruned",
		sql:  "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events) VALUES (1, 2, 2)", may: "janitor",
	},
	{name: "join what was pruned", sql: "DELETE FROM {schema}.outbox_pruned", may: "janitor"},
	{name: "read the home", sql: "SELECT * FROM {schema}.outbox_identity", may: "relay viewer operator"},
	{
		name: "adopt a home", sql: "INSERT INTO {schema}.outbox_identity (system_identifier, timeline) VALUES (1, 1)",
		may: "relay",
	},
	{
		name: "move the home",
		sql:  "UPDATE {schema}.outbox_identity SET system_identifier = 1, timeline = 1, since = now(), seen_at = now()",
		may:  "relay",
	},
	{name: "forget the home", sql: "DELETE FROM {schema}.outbox_identity"},
	{name: "read what is paused", sql: "SELECT * FROM {schema}.outbox_pauses", may: "relay viewer operator"},
	{
		name: "pause by hand",
		sql:  "INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason) VALUES ('topic', 'orders', 'me', 'why')",
	},
	{
		name: "pause with another time", sql: "INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason, since) " +
			"VALUES ('topic', 'orders', 'me', 'why', now())",
	},
	{name: "resume by hand", sql: "DELETE FROM {schema}.outbox_pauses"},
	{name: "read what is limited", sql: "SELECT * FROM {schema}.outbox_limits", may: "relay viewer operator"},
	{
		name: "limit by hand",
		sql:  "INSERT INTO {schema}.outbox_limits (topic, rate, actor, reason) VALUES ('orders', 1, 'me', 'why')",
	},
	{name: "change a limit by hand", sql: "UPDATE {schema}.outbox_limits SET rate = 2"},
	{name: "lift a limit by hand", sql: "DELETE FROM {schema}.outbox_limits"},
	{name: "read what went wrong", sql: "SELECT * FROM {schema}.outbox_attempts", may: "viewer operator"},
	{
		name: "tell of an attempt", sql: "INSERT INTO {schema}.outbox_attempts (event_id, number, relay, class, topic, " +
			"error) VALUES ('{ready}', 1, '" + relayOne + "', 'rejected', 'orders', 'no')",
		may: "relay",
	},
	{
		name: "date an attempt back", sql: "INSERT INTO {schema}.outbox_attempts (event_id, number, at, relay, class, " +
			"topic, error) VALUES ('{ready}', 1, now(), '" + relayOne + "', 'rejected', 'orders', 'no')",
	},
	{name: "change an attempt", sql: "UPDATE {schema}.outbox_attempts SET error = ''"},
	{
		name: "forget attempts", sql: "DELETE FROM {schema}.outbox_attempts WHERE event_id = '{ready}'",
		may: "relay janitor",
	},
	{name: "read the minutes", sql: "SELECT * FROM {schema}.outbox_minutes", may: "viewer operator"},
	{
		name: "write a minute", sql: "INSERT INTO {schema}.outbox_minutes SELECT now(), 'orders', '" + relayOne +
			"', 0, 0, 0, 0, 0, 0, 0, array_fill(0::bigint, '{16}'), 0, 0",
		may: "relay",
	},
	{name: "change a minute", sql: "UPDATE {schema}.outbox_minutes SET published = 0"},
	{name: "forget old minutes", sql: "DELETE FROM {schema}.outbox_minutes WHERE minute < now()", may: "relay"},
	{name: "change who paused", sql: "UPDATE {schema}.outbox_pauses SET actor = 'them'"},
	{name: "read the schema's version", sql: "SELECT * FROM {schema}.outbox_meta", may: granted},
	{name: "change the schema's version", sql: "UPDATE {schema}.outbox_meta SET schema_version = 9"},
	{
		name: "write the migrator's table",
		sql:  "INSERT INTO {schema}.outbox_schema_version (version_id, is_applied) VALUES (9, true)",
	},
	{name: "make a table beside ours", sql: "CREATE TABLE {schema}.theirs ()"},
	{name: "call outbox_lane", sql: "SELECT {schema}.outbox_lane('default', 'order', '1')", may: "everyone"},
	{name: "call outbox_uuid7", sql: "SELECT {schema}.outbox_uuid7()", may: "producer"},
	{name: "call outbox_wake", sql: "SELECT {schema}.outbox_wake()", may: "producer operator"},
	{name: "call outbox_pause", sql: "SELECT {schema}.outbox_pause('me', 'why', 'all')", may: "operator"},
	{name: "call outbox_resume", sql: "SELECT {schema}.outbox_resume('me', 'why', 'all')", may: "operator"},
	{name: "call outbox_limit", sql: "SELECT {schema}.outbox_limit('me', 'why', 'orders', 5)", may: "operator"},
	{name: "resume a restored database", sql: "SELECT {schema}.outbox_resume('me', 'why', 'restored')", may: "operator"},
	{name: "look at an event", sql: "SELECT * FROM {schema}.outbox_look('me', 'why', '{ready}')", may: "reader"},
	{name: "look at what is not there", sql: "SELECT * FROM {schema}.outbox_look('me', 'why', '{new}')", may: "reader"},
	{
		name: "look, and read the log", sql: "SELECT * FROM {schema}.outbox_look('me', 'why', '{ready}'); " +
			"SELECT * FROM {schema}.outbox_actions",
	},
	{name: "call outbox_done_before", sql: "SELECT {schema}.outbox_done_before('pause', '{new}')"},
	{
		name: "redrive by outbox_act", sql: "SELECT {schema}.outbox_act('me', 'why', 'redrive', '{{dead}, {passed}}')",
		may: "operator",
	},
	{
		name: "call outbox_redeliver", sql: "SELECT {schema}.outbox_redeliver('me', 'why', '{{published}}', 'orders', 1)",
		may: "operator",
	},
	{
		name: "call outbox_cancel", sql: "SELECT {schema}.outbox_cancel('me', 'why', " +
			"(SELECT action_id FROM {schema}.outbox_requests WHERE delivered_at IS NULL))", may: "operator",
	},
	{
		name: "call outbox_reissue", sql: "SELECT {schema}.outbox_reissue('me', 'why', '{{published}}')", may: "operator",
	},
	{
		name: "start a job", sql: "SELECT {schema}.outbox_start_job('me', 'why', 'redrive', '', 1, 1)", may: "operator",
	},
	{
		name: "pause a job", sql: "SELECT {schema}.outbox_change_job('me', 'why', 'pause', '{new}')", may: "operator",
	},
	{name: "take a job", sql: "SELECT {schema}.outbox_take_job('{new}', '{new}', 'me', 1)", may: "operator"},
	{name: "work on a job", sql: "SELECT {schema}.outbox_work_job('{new}', '{new}', 0, 1, '{}')", may: "operator"},
	{name: "end a job", sql: "SELECT {schema}.outbox_fail_job('{new}', '{new}', 'why')", may: "operator"},
	{name: "decide without a check", sql: "SELECT {schema}.outbox_decide('me', 'why', 'skip', '{}', '{new}', true, true)"},
	{
		name: "a part of a redelivery",
		sql:  "SELECT {schema}.outbox_redeliver_part('me', 'why', '{}', NULL, NULL, '{new}')",
	},
	{
		name: "a part of a reissue",
		sql:  "SELECT {schema}.outbox_reissue_part('me', 'why', '{}', NULL, '{new}', true, true)",
	},
	{
		name: "another payload of an event",
		sql:  "SELECT {schema}.outbox_payload_as('{}', '{new}', '{new}', NULL, now())",
	},
	{name: "read jobs", sql: "SELECT * FROM {schema}.outbox_jobs", may: "viewer operator"},
	{
		name: "write a job", sql: "INSERT INTO {schema}.outbox_jobs (id, verb, filter, most, expected, actor, reason, " +
			"last_seq) VALUES ('{new}', 'redrive', '', 1, 1, 'me', 'why', 1)",
	},
	{name: "change a job", sql: "UPDATE {schema}.outbox_jobs SET position = 7"},
	{name: "delete jobs", sql: "DELETE FROM {schema}.outbox_jobs"},
	{name: "truncate jobs", sql: "TRUNCATE {schema}.outbox_jobs"},
	{name: "skip by outbox_act", sql: "SELECT {schema}.outbox_act('me', 'why', 'skip', '{{dead}}')", may: "operator"},
	{
		name: "release by outbox_act", sql: "SELECT {schema}.outbox_act('me', 'why', 'release', '{{dead}}')",
		may: "operator",
	},
	{
		name: "discard by outbox_act", sql: "SELECT {schema}.outbox_act('me', 'why', 'discard', '{{dead}, {ready}}')",
		may: "operator",
	},
	{
		name: "call outbox_check_event", sql: "SELECT {schema}.outbox_check_event('{new}', 'n', 't', 'a', '1', NULL, NULL, " +
			"'{\"eventId\":\"{new}\"}', NULL)", may: "producer",
	},
	{name: "call outbox_fill_lane", sql: "SELECT {schema}.outbox_fill_lane()"},
	{name: "call outbox_check_data", sql: "SELECT {schema}.outbox_check_data('{}')", may: "producer"},
	{name: "call outbox_grant", sql: "SELECT {schema}.outbox_grant('relay', current_user)"},
	{name: "call outbox_seal", sql: "SELECT {schema}.outbox_seal()"},
}
