package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// mayLook makes the role of the operator a reader as well.
func (e *env) mayLook() {
	e.t.Helper()
	e.exec("SELECT {schema}.outbox_grant('reader', $1)", "operator_"+e.schema)
}

// looked is what a look shows, or why it shows nothing.
func (e *env) looked(a operator.Action, id outbox.ID) string {
	e.t.Helper()
	content, err := e.operator.Look(e.t.Context(), a, id)
	if err != nil {
		if content.Payload != nil || content.Headers != nil || content.DedupeKey != "" {
			e.t.Errorf("an error, and shown: %s", content.Payload)
		}
		return err.Error()
	}
	return fmt.Sprintf("%s %s %s", content.Payload, content.Headers, content.DedupeKey)
}

// looks is how many lines of the log are about looks.
func (e *env) looks() string {
	e.t.Helper()
	return e.one("SELECT count(*)::text FROM {schema}.outbox_actions WHERE verb = 'look'")
}

// withContent writes an event with all that only they see who may.
func (e *env) withContent() outbox.ID {
	e.t.Helper()
	id := outbox.NewID()
	e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, headers,
			dedupe_key, state)
		VALUES ($1::text::uuid, 'order_created', 'order', '1', ('{"eventId":  "' || $1::text || '"}')::json,
			'{"trace": "x"}', 'once', 6)`, id.String())
	return id
}

// TestALookIsLogged with who, what and why, and shows the bytes that were written; without the grant there is neither.
func TestALookIsLogged(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id, bare := e.withContent(), e.event("2", "order_created", state.Ready)
		for _, part := range []string{"operator", "operator and reader"} {
			may, err := e.operator.MayLook(t.Context())
			if err != nil || may != (part != "operator") {
				t.Errorf("%s: may look: %t, %v", part, may, err)
			}
			if may {
				break
			}
			if _, err := e.operator.Look(t.Context(), action(), id); !errors.Is(err, operator.ErrMayNotLook) ||
				!strings.Contains(err.Error(), "outbox_grant('reader'") || e.looks() != "0" {
				t.Errorf("as %s: %v, %s in the log", part, err, e.looks())
			}
			e.mayLook()
		}
		if got, want := e.looked(action(), id), `{"eventId":  "`+id.String()+`"} {"trace": "x"} once`; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if got, want := e.looked(action(), bare), `{"eventId" : "`+bare.String()+`"}  `; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		page, err := e.operator.Actions(t.Context(), operator.ActionFilter{Verb: "look", Event: id})
		if err != nil || len(page.Actions) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if line := page.Actions[0]; line.Actor != "ann" || line.Role != "operator_"+e.schema || line.Letter != 0 ||
			line.Reason != "the topic is back" || line.Target != "" || line.Event == nil || *line.Event != id {
			t.Errorf("%+v", line)
		}
		before := e.looks()
		if _, err := e.operator.Look(t.Context(), action(), outbox.NewID()); !errors.Is(err, operator.ErrNoEvent) {
			t.Errorf("an event that is not there: %v", err)
		}
		if _, err := e.operator.Look(t.Context(), operator.Action{ID: outbox.NewID()}, id); err == nil ||
			!strings.Contains(err.Error(), "no actor") {
			t.Errorf("nobody looks: %v", err)
		}
		_, err = e.role.Exec(t.Context(), e.sql("SELECT {schema}.outbox_look(' ', 'why', $1)"), id.String())
		if err == nil || !strings.Contains(err.Error(), "actor") {
			t.Errorf("nobody looks: %v", err)
		}
		if e.looks() != before {
			t.Errorf("%s looks are in the log, want %s", e.looks(), before)
		}
	})
}

// TestALookIsOfOnePersonAndMoment: its id stands for no other decision, and for nobody else's look.
func TestALookIsOfOnePersonAndMoment(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.mayLook()
		id, dead := e.withContent(), e.event("2", "order_created", state.Dead)
		look := action()
		first := e.looked(look, id)
		if again := e.looked(look, id); again != first || !strings.Contains(first, "eventId") || e.looks() != "1" {
			t.Errorf("first %s, sent again %s, %s in the log", first, again, e.looks())
		}
		if other := e.looked(look, dead); !strings.Contains(other, dead.String()) || e.looks() != "2" {
			t.Errorf("another event of the same action: %s, %s in the log", other, e.looks())
		}
		bob := operator.Action{ID: look.ID, Actor: "bob"}
		if got := e.looked(bob, id); !strings.Contains(got, "by somebody else or long ago") {
			t.Errorf("by somebody else: %s", got)
		}
		old := action()
		e.exec(`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor, acted_at, session_role)
			VALUES ($1, 'look', $2, 'ann', clock_timestamp() - interval '11 minutes', $3)`, old.ID.String(), id.String(),
			"operator_"+e.schema)
		if got := e.looked(old, id); !strings.Contains(got, "by somebody else or long ago") {
			t.Errorf("later: %s", got)
		}
		if _, err := e.operator.Redrive(t.Context(), look, dead); err == nil ||
			!strings.Contains(err.Error(), "used before, for a look") {
			t.Errorf("a redrive with the id of a look: %v", err)
		}
		redriven := action()
		e.do(e.operator.Redrive, redriven, dead)
		if got := e.looked(redriven, dead); !strings.Contains(got, "used before, for a redrive") {
			t.Errorf("a look with the id of a redrive: %s", got)
		}
		if e.looks() != "3" {
			t.Errorf("%s looks are in the log, want 3", e.looks())
		}
	})
}

// TestALookDecidesNothing: a dead letter stays unresolved, what was decided is seen behind any number of looks, and
// when the event and its dead letters go, who has looked stays in the log.
func TestALookDecidesNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.mayLook()
		id := e.event("1", "order_created", state.Dead)
		e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
				aggregate_type, aggregate_id, error_reason, payload_json, headers)
			SELECT seq, id, created_at, 3, false, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts',
				'{"of": "the newest"}', '{"h": "1"}' FROM {schema}.outbox_events WHERE id = $1`, id.String())
		e.looked(action(), id)
		unresolved, err := e.operator.DeadLetters(t.Context(), operator.DeadLetterFilter{Unresolved: true})
		if err != nil || len(unresolved.Letters) != 2 {
			t.Errorf("%d dead letters are unresolved, want 2: %v", len(unresolved.Letters), err)
		}
		if _, err := e.admin.Exec(t.Context(), e.sql("DELETE FROM {schema}.outbox_dlq")); err == nil {
			t.Error("a dead letter that was only looked at can be deleted")
		}
		e.do(e.operator.Discard, action(), id)
		e.exec(`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor)
			SELECT gen_random_uuid(), 'look', $1, 'bob' FROM generate_series(1, 150)`, id.String())
		explained, err := e.operator.Explain(t.Context(), id)
		if err != nil || !strings.Contains(explained.Causes[0].Says, "ann discarded it") {
			t.Errorf("%+v, %v", explained.Causes, err)
		}
		e.exec("DELETE FROM {schema}.outbox_events WHERE id = $1", id.String())
		if got := e.looked(action(), id); got != `{"of": "the newest"} {"h": "1"} ` {
			t.Errorf("of the dead letter: %s", got)
		}
		if gone, err := e.operator.Explain(t.Context(), id); err != nil ||
			!strings.Contains(gone.Causes[0].Says, "ann did a discard") {
			t.Errorf("%+v, %v", gone.Causes, err)
		}
		e.exec("DELETE FROM {schema}.outbox_dlq WHERE id = (SELECT max(id) FROM {schema}.outbox_dlq)")
		if _, err := e.admin.Exec(t.Context(), e.sql("DELETE FROM {schema}.outbox_dlq")); err == nil {
			t.Error("a dead letter that was only looked at can be deleted")
		}
		if e.looks() != "152" {
			t.Errorf("%s looks are in the log, want 152", e.looks())
		}
		if _, err := e.operator.Look(t.Context(), action(), id); err != nil {
			t.Errorf("the older dead letter is left: %v", err)
		}
	})
}

// TestNobodyLooksUnseen: where the log cannot be written nothing is shown, and of a look that was rolled back the
// server's own log has a line, without the payload.
func TestNobodyLooksUnseen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.mayLook()
		id := e.withContent()
		config := e.role.Config().ConnConfig.Copy()
		config.RuntimeParams["client_min_messages"] = "log"
		var said []string
		config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
			said = append(said, notice.SeverityUnlocalized+" "+notice.Message)
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		look := e.sql("SELECT {schema}.outbox_look('ann', 'why', '" + id.String() + "')::text")
		for _, access := range []pgx.TxAccessMode{pgx.ReadOnly, pgx.ReadWrite} {
			tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{AccessMode: access})
			if err != nil {
				t.Fatal(err)
			}
			var seen string
			err = tx.QueryRow(t.Context(), look).Scan(&seen)
			if (err != nil) != (access == pgx.ReadOnly) {
				t.Errorf("%s: %q, %v", access, seen, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		last := ""
		if len(said) > 0 {
			last = said[len(said)-1]
		}
		if !strings.HasPrefix(last, "LOG outbox_look: ") || !strings.Contains(last, id.String()) ||
			!strings.Contains(last, "operator_"+e.schema) || strings.Contains(last, "eventId") || e.looks() != "0" {
			t.Errorf("the server's log says %q, and %s looks are in ours", said, e.looks())
		}
	})
}

// TestALookAtWhatWasErased shows the hashes that are left.
func TestALookAtWhatWasErased(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.mayLook()
		id := e.withContent()
		if _, err := e.operator.Erase(t.Context(), action(), id); err != nil {
			t.Fatal(err)
		}
		if got := e.looked(action(), id); !strings.HasPrefix(got, `{"erased":`) || strings.Contains(got, "trace") {
			t.Errorf("got %s", got)
		}
	})
}
