package schema

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// The columns of outbox_events: the facts, and what delivery changes.
var (
	facts = []string{
		"seq", "id", "created_at", "lane", "namespace", "event_type", "aggregate_type", "aggregate_id", "tenant_id",
		"dedupe_key", "payload_json", "headers",
	}
	mutable = []string{"state", "published_at", "attempt_count", "last_error"}
)

// wantRejected runs a statement that the database must refuse to change what was written.
func wantRejected(t testing.TB, db *pgtest.DB, statement string, args ...any) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), db.SQL(statement), args...)
	if pgtest.SQLState(err) != "23001" {
		t.Errorf("%s: got %v, want SQLSTATE 23001", statement, err)
	}
}

// TestEventsAreAppendOnly: not even the owner, who is superuser here, changes a fact, whatever the state.
func TestEventsAreAppendOnly(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		all := column(t, db.Pool, "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0",
			quote(db.Schema)+".outbox_events")
		if want := slices.Sorted(slices.Values(slices.Concat(facts, mutable))); !slices.Equal(
			slices.Sorted(slices.Values(all)), want) {
			t.Fatalf("the table has %v, this test knows %v", all, want)
		}
		for state := range 8 {
			id := insertEvent(t, db, "1", state)
			before := column(t, db.Pool, db.SQL("SELECT e::text FROM {schema}.outbox_events e WHERE id = $1"), id)
			for _, fact := range facts {
				value := fact
				if fact == "seq" {
					value = "DEFAULT"
				}
				wantRejected(t, db, "UPDATE {schema}.outbox_events SET "+fact+" = "+value+" WHERE id = $1", id)
				wantRejected(t, db, "UPDATE {schema}.outbox_events SET state = state, ("+fact+") = ROW ("+value+") WHERE id = $1",
					id)
			}
			if after := column(t, db.Pool, db.SQL("SELECT e::text FROM {schema}.outbox_events e WHERE id = $1"),
				id); !slices.Equal(before, after) {
				t.Errorf("state %d: the row changed", state)
			}
		}
		wantRejected(t, db, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			SELECT id, event_type, aggregate_type, aggregate_id, payload_json FROM {schema}.outbox_events WHERE state = 0
			ON CONFLICT (lane, seq) DO UPDATE SET payload_json = excluded.payload_json`)
		wantRejected(t, db, "TRUNCATE {schema}.outbox_events")
		wantRejected(t, db, "TRUNCATE {schema}.outbox_events RESTART IDENTITY CASCADE")
	})
}

func TestDeliveryStateMayChange(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		id := insertEvent(t, db, "1", 0)
		for _, state := range []int{1, 2, 3, 4, 5, 1, 6, 0} {
			db.Exec(t, states.Move, id, state)
			if got := db.Count(t, "SELECT "+states.Of+" FROM {schema}.outbox_events e WHERE id = $1", id); got != state {
				t.Errorf("the event is in state %d, want %d", got, state)
			}
		}
		db.Exec(t, "UPDATE {schema}.outbox_events SET attempt_count = 1, last_error = 'x' WHERE id = $1", id)
	})
}

// TestHeldRowsSayHow: a kind that there is, a time for a retry, and another version at every change.
func TestHeldRowsSayHow(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		id := insertEvent(t, db, "1", 2)
		for statement, want := range map[string]string{
			"UPDATE {schema}.outbox_held SET kind = 0":              "23514",
			"UPDATE {schema}.outbox_held SET kind = 5":              "23514",
			"UPDATE {schema}.outbox_held SET kind = 1":              "23514", // with no time
			"UPDATE {schema}.outbox_held SET version = 7":           "428C9",
			"UPDATE {schema}.outbox_held SET since = NULL":          "23502",
			"INSERT INTO {schema}.outbox_held (version) VALUES (7)": "428C9",
			`INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
				SELECT lane, seq, 3, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_held`: "23505",
		} {
			if _, err := db.Pool.Exec(t.Context(), db.SQL(statement)); pgtest.SQLState(err) != want {
				t.Errorf("%s: got %v, want SQLSTATE %s", statement, err, want)
			}
		}
		last := 0
		for _, state := range []int{3, 1, 1, 4, 5, 1, 6, 2} {
			db.Exec(t, states.Move, id, state)
			if state > 4 {
				if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_held"); n != 0 {
					t.Errorf("state %d: %d rows are held", state, n)
				}
				continue
			}
			version := db.Count(t, "SELECT version FROM {schema}.outbox_held WHERE kind = $1", state)
			if version <= last {
				t.Errorf("state %d has version %d, the one before it had %d", state, version, last)
			}
			last = version
		}
	})
}

// TestOnlyFinishedEventsAreDeleted: published and discarded ones, one by one and in a crowd.
func TestOnlyFinishedEventsAreDeleted(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		ids := map[int]string{}
		for state := range 8 {
			ids[state] = insertEvent(t, db, "1", state)
		}
		for state := range 6 {
			wantRejected(t, db, "DELETE FROM {schema}.outbox_events WHERE id = $1", ids[state])
		}
		wantRejected(t, db, "DELETE FROM {schema}.outbox_events")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 8 {
			t.Fatalf("%d events are left of 8", n)
		}
		db.Exec(t, "DELETE FROM {schema}.outbox_events WHERE state IN (6, 7)")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 6 {
			t.Errorf("%d events are left, want 6", n)
		}
	})
}

// TestANewEventIsReady is EM-8: ready, no attempt, due now, whichever way it was written.
func TestANewEventIsReady(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		insertEvent(t, db, "1", 0)
		db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
		db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')")
		if n := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state = 0 AND attempt_count = 0 
			AND published_at IS NULL AND last_error IS NULL
			AND lane = {schema}.outbox_lane(namespace, aggregate_type, aggregate_id)
			AND created_at BETWEEN now() - interval '1 hour' AND now()`); n != 3 {
			t.Errorf("%d of 3 events are new", n)
		}
		if n := db.Count(t,
			"SELECT count(*) FROM {schema}.outbox_status WHERE status = 'pending' AND due_at <= now()"); n != 3 {
			t.Errorf("%d of 3 events are pending and due", n)
		}
		_, err := db.Pool.Exec(t.Context(), db.SQL("INSERT INTO {schema}.outbox_events (seq, id, event_type, "+
			"aggregate_type, aggregate_id, payload_json) VALUES (1, gen_random_uuid(), 'a', 'b', 'c', '{}')"))
		if pgtest.SQLState(err) != "428C9" {
			t.Errorf("a number chosen by hand: got %v, want SQLSTATE 428C9", err)
		}
	})
}

// insertDeadLetter writes a dead letter and returns its number.
func insertDeadLetter(t testing.TB, db *pgtest.DB, eventID string) (id int64) {
	t.Helper()
	err := db.Pool.QueryRow(t.Context(), db.SQL(`INSERT INTO {schema}.outbox_dlq
		(event_seq, event_id, created_at, attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, topic, 
		error_reason, payload_json)
		SELECT seq, id, created_at, 10, true, namespace, event_type, aggregate_type, aggregate_id, 'orders', 'max_attempts', 
		payload_json
		  FROM {schema}.outbox_events WHERE id = $1 RETURNING id`), eventID).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func insertAction(t testing.TB, db *pgtest.DB, verb, eventID string, dlqID any) (action string) {
	t.Helper()
	err := db.Pool.QueryRow(t.Context(), db.SQL(`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, `+
		`dlq_id, actor, reason)
		VALUES (gen_random_uuid(), $1, $2, $3, 'somebody', 'a test') RETURNING action_id::text`), verb, eventID,
		dlqID).Scan(&action)
	if err != nil {
		t.Fatal(err)
	}
	return action
}

// TestDeadLettersAreAppendOnly: nothing of a dead letter or of the log changes, and neither goes before
// the dead letter is resolved. A skip resolves nothing.
func TestDeadLettersAreAppendOnly(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		event := insertEvent(t, db, "1", 4)
		dead := insertDeadLetter(t, db, event)
		for _, table := range []string{"outbox_dlq", "outbox_actions"} {
			for _, name := range column(t, db.Pool,
				"SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 1", quote(db.Schema)+"."+table) {
				wantRejected(t, db, "UPDATE {schema}."+table+" SET "+name+" = "+name)
			}
			wantRejected(t, db, "TRUNCATE {schema}."+table+" CASCADE")
		}
		wantRejected(t, db, "DELETE FROM {schema}.outbox_dlq")
		insertAction(t, db, "skip", event, dead)
		wantRejected(t, db, "DELETE FROM {schema}.outbox_dlq")
		wantRejected(t, db, "DELETE FROM {schema}.outbox_actions")
		insertAction(t, db, "discard", event, dead)
		wantRejected(t, db, "DELETE FROM {schema}.outbox_actions")
		db.Exec(t, "DELETE FROM {schema}.outbox_dlq")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_actions"); n != 0 {
			t.Errorf("%d actions outlived their dead letter", n)
		}
	})
}

// TestOpenRequestsStay: a request to deliver again changes only in how it went, and is not deleted, alone
// or with its action, while it is open.
func TestOpenRequestsStay(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		event := insertEvent(t, db, "1", 6)
		action := insertAction(t, db, "redeliver", event, nil)
		db.Exec(t, `INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, lane)
			SELECT $1, id, seq, {schema}.outbox_lane(namespace, aggregate_type, aggregate_id) FROM {schema}.outbox_events 
			WHERE id = $2`, action, event)
		for _, name := range []string{"action_id", "event_id", "event_seq", "lane", "topic", "requested_at"} {
			wantRejected(t, db, "UPDATE {schema}.outbox_requests SET "+name+" = "+name)
		}
		wantRejected(t, db, "DELETE FROM {schema}.outbox_requests")
		wantRejected(t, db, "DELETE FROM {schema}.outbox_actions")
		db.Exec(t, "UPDATE {schema}.outbox_requests SET attempts = 1, last_error = 'x', due_at = now(), taken = 1")
		db.Exec(t, "UPDATE {schema}.outbox_requests SET delivered_at = now()")
		_, err := db.Pool.Exec(t.Context(), db.SQL("UPDATE {schema}.outbox_requests SET canceled_at = now()"))
		if pgtest.SQLState(err) != "23514" {
			t.Errorf("delivered and canceled: got %v", err)
		}
		db.Exec(t, "DELETE FROM {schema}.outbox_actions")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_requests"); n != 0 {
			t.Errorf("%d requests outlived their action", n)
		}
	})
}

// TestAKeyStandsForOneEvent: a producer may touch the row of a dedupe key, and not give the key away.
func TestAKeyStandsForOneEvent(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')")
		for _, name := range []string{
			"event_id", "created_at", "namespace", "event_type", "tenant_id", "dedupe_key", "content_hash",
		} {
			wantRejected(t, db, "UPDATE {schema}.outbox_dedupe SET "+name+" = "+name)
		}
		db.Exec(t, "UPDATE {schema}.outbox_dedupe SET repeated = true")
	})
}

// TestTheDeadLetterHasWhatWasAsked is DL-1: the columns, and the reasons that are accepted.
func TestTheDeadLetterHasWhatWasAsked(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		has := column(t, db.Pool, "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0",
			quote(db.Schema)+".outbox_dlq")
		for _, name := range []string{
			"event_id", "namespace", "tenant_id", "event_type", "aggregate_type", "aggregate_id", "topic",
			"payload_json", "headers",
			"created_at", "error_reason", "error_detail", "attempts", "failed_at",
		} {
			if !slices.Contains(has, name) {
				t.Errorf("outbox_dlq has no %s", name)
			}
		}
		for reason, want := range map[string]string{
			"max_attempts": "", "unknown_event_type": "", "invalid_payload": "", "aggregate_mismatch": "", "too_large": "",
			"rejected": "", "crash_suspect": "", "other": "23514", "": "23514",
		} {
			err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(t.Context(), db.SQL(`INSERT INTO {schema}.outbox_dlq
					(event_seq, event_id, created_at, attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, 
					error_reason, payload_json)
					VALUES (1, gen_random_uuid(), now(), 1, false, 'n', 't', 'a', '1', $1, '{}')`), reason)
				return err
			})
			if pgtest.SQLState(err) != want {
				t.Errorf("%q: got %v, want SQLSTATE %q", reason, err, want)
			}
		}
	})
}
