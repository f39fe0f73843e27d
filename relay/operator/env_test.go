package operator_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// A env is an outbox, and an operator who has the grants of an operator and no others.
type env struct {
	t        *testing.T
	admin    *pgxpool.Pool
	schema   string
	role     *pgxpool.Pool
	operator *operator.Operator
}

func onEachServer(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	serverstest.OnEach(t, func(t *testing.T, address string) { test(t, newEnv(t, address)) })
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	e := &env{t: t}
	e.admin, e.schema = relaytest.Database(t, address)
	role := "operator_" + e.schema
	e.exec("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.admin.Exec(context.Background(), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	e.exec("SELECT {schema}.outbox_grant('operator', $1)", role)
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(role)
	config, err := pgxpool.ParseConfig(parsed.String())
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	if e.role, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.role.Close)
	e.operator = operator.New(e.role, e.schema)
	return e
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(statement string, args ...any) {
	e.t.Helper()
	if _, err := e.admin.Exec(e.t.Context(), e.sql(statement), args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

func (e *env) one(query string, args ...any) (answer string) {
	e.t.Helper()
	if err := e.admin.QueryRow(e.t.Context(), e.sql(query), args...).Scan(&answer); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// untilWaiting waits until so many sessions of the operator wait for a lock.
func (e *env) untilWaiting(sessions string) {
	e.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); ; <-look.C {
		got := e.one(`SELECT count(*)::text FROM pg_catalog.pg_stat_activity
			WHERE usename = $1 AND wait_event_type = 'Lock'`, "operator_"+e.schema)
		if got == sessions {
			return
		}
		if time.Since(began) > patience {
			e.t.Fatalf("%s of %s sessions wait for a lock", got, sessions)
		}
	}
}

// event writes an event of an aggregate and type in a state, as a relay would have left it: 3 attempts,
// and a dead letter where it is dead.
func (e *env) event(aggregate, eventType string, is state.State) outbox.ID {
	e.t.Helper()
	id := outbox.NewID()
	e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, attempt_count,
			last_error)
		VALUES ($1::text::uuid, $2, 'order', $3, json_build_object('eventId', $1::text), 3, 'broken')`,
		id.String(), eventType, aggregate)
	e.becomes(id, is)
	if is == state.DeadBlocking || is == state.Dead {
		e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type, 
			aggregate_type, aggregate_id, error_reason, payload_json)
			SELECT seq, id, created_at, 3, $2::bool, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts', 
			payload_json FROM {schema}.outbox_events WHERE id = $1`, id.String(), is == state.DeadBlocking)
	}
	return id
}

// held tells whether an event in this state has a row in outbox_held.
func held(is state.State) bool { return is >= state.Retrying && is <= state.DeadBlocking }

// becomes puts an event into a state, in both tables.
func (e *env) becomes(id outbox.ID, is state.State) {
	e.t.Helper()
	e.exec(`DELETE FROM {schema}.outbox_held h USING {schema}.outbox_events e
		WHERE e.id = $1 AND h.lane = e.lane AND h.seq = e.seq`, id.String())
	onEvent := is
	if held(is) {
		onEvent = state.Retrying // held, on the event's own row
		e.exec(`INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type,
				aggregate_id)
			SELECT lane, seq, $2::int, CASE $2::int WHEN 1 THEN now() + interval '1 hour' END, namespace, event_type,
			aggregate_type, aggregate_id FROM {schema}.outbox_events WHERE id = $1`, id.String(), int(is))
	}
	e.exec(`UPDATE {schema}.outbox_events SET state = $2::int, published_at = CASE $2::int WHEN 6 THEN now() END
		WHERE id = $1`, id.String(), int(onEvent))
}

// row is everything about an event that an operator may change: state, attempts and whether it is due. An event that is
// held by one table and not by the other is in no state.
func (e *env) row(id outbox.ID) string {
	e.t.Helper()
	return e.one(`SELECT CASE WHEN (e.state = 1) = (h.kind IS NOT NULL) THEN coalesce(h.kind, e.state)::text
			ELSE 'event ' || e.state || ', held ' || coalesce(h.kind::text, 'not') END
		|| ' attempts=' || e.attempt_count || CASE WHEN h.due <= clock_timestamp() THEN ' due' ELSE '' END
		FROM {schema}.outbox_events e LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
		WHERE e.id = $1`, id.String())
}

// actions is the log of an event.
func (e *env) actions(id outbox.ID) string {
	e.t.Helper()
	return e.one(`SELECT coalesce(string_agg(verb || ' by ' || actor || ': ' || reason || CASE WHEN dlq_id IS NULL THEN `+
		`'' ELSE ', of its dead letter' END, '; ' ORDER BY id), '')
		FROM {schema}.outbox_actions WHERE event_id = $1`, id.String())
}

func action() operator.Action {
	return operator.Action{ID: outbox.NewID(), Actor: "ann", Reason: "the topic is back"}
}

type order func(ctx context.Context, action operator.Action, scope operator.Scope) (operator.Outcome, error)

type verb func(ctx context.Context, action operator.Action, events ...outbox.ID) ([]operator.Result, error)

func (e *env) verbs() map[string]verb {
	return map[string]verb{
		"redrive": e.operator.Redrive, "skip": e.operator.Skip, "release": e.operator.Release, "discard": e.operator.Discard,
	}
}

// do runs a verb on one event.
func (e *env) do(do verb, a operator.Action, id outbox.ID) operator.Result {
	e.t.Helper()
	results, err := do(e.t.Context(), a, id)
	if err != nil {
		e.t.Fatal(err)
	}
	if len(results) != 1 || results[0].Event != id {
		e.t.Fatalf("got %+v", results)
	}
	return results[0]
}
