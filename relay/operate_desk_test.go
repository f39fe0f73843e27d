package relay_test

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// A desk is an outbox, and an operator who has the grants of an operator and no others.
type desk struct {
	t        *testing.T
	admin    *pgxpool.Pool
	schema   string
	role     *pgxpool.Pool
	operator *relay.Operator
}

func onEachDesk(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	for name, server := range map[string][2]string{
		"postgres18": {"POSTHASTE_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"},
		"postgres15": {"POSTHASTE_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server[1]
			if given := os.Getenv(server[0]); given != "" {
				address = given
			}
			test(t, newDesk(t, address))
		})
	}
}

func newDesk(t *testing.T, address string) *desk {
	t.Helper()
	d := &desk{t: t}
	d.admin, d.schema = relaytest.Database(t, address)
	role := "operator_" + d.schema
	d.exec("CREATE ROLE " + role + " LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := d.admin.Exec(context.Background(), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	d.exec("SELECT {schema}.outbox_grant('operator', $1)", role)
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
	if d.role, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.role.Close)
	d.operator = relay.NewOperator(d.role, d.schema)
	return d
}

func (d *desk) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{d.schema}.Sanitize())
}

func (d *desk) exec(statement string, args ...any) {
	d.t.Helper()
	if _, err := d.admin.Exec(d.t.Context(), d.sql(statement), args...); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

func (d *desk) one(query string, args ...any) (answer string) {
	d.t.Helper()
	if err := d.admin.QueryRow(d.t.Context(), d.sql(query), args...).Scan(&answer); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// untilWaiting waits until so many sessions of the operator wait for a lock.
func (d *desk) untilWaiting(sessions string) {
	d.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); ; <-look.C {
		got := d.one(`SELECT count(*)::text FROM pg_catalog.pg_stat_activity
			WHERE usename = $1 AND wait_event_type = 'Lock'`, "operator_"+d.schema)
		if got == sessions {
			return
		}
		if time.Since(began) > patience {
			d.t.Fatalf("%s of %s sessions wait for a lock", got, sessions)
		}
	}
}

// event writes an event of an aggregate and type in a state, as a relay would have left it: 3 attempts,
// and a dead letter where it is dead.
func (d *desk) event(aggregate, eventType string, state int) outbox.ID {
	d.t.Helper()
	id := outbox.NewID()
	d.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, $2, 'order', $3, json_build_object('eventId', $1::text))`, id.String(), eventType, aggregate)
	d.exec(`UPDATE {schema}.outbox_events SET state = $2::int, attempt_count = 3, last_error = 'broken',
		published_at = CASE $2::int WHEN 6 THEN now() END, next_attempt_at = CASE $2::int WHEN 1 THEN now() + interval '1 hour' END WHERE id = $1`, id.String(), state)
	if state == 4 || state == 5 {
		d.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, error_reason, payload_json)
			SELECT seq, id, created_at, 3, state = 4, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts', payload_json FROM {schema}.outbox_events WHERE id = $1`, id.String())
	}
	return id
}

// row is everything about an event that an operator may change: state, attempts and whether it is due.
func (d *desk) row(id outbox.ID) string {
	d.t.Helper()
	return d.one(`SELECT state || ' attempts=' || attempt_count || CASE WHEN next_attempt_at <= clock_timestamp() THEN ' due' ELSE '' END
		FROM {schema}.outbox_events WHERE id = $1`, id.String())
}

// actions is the log of an event.
func (d *desk) actions(id outbox.ID) string {
	d.t.Helper()
	return d.one(`SELECT coalesce(string_agg(verb || ' by ' || actor || ': ' || reason || CASE WHEN dlq_id IS NULL THEN '' ELSE ', of its dead letter' END, '; ' ORDER BY id), '')
		FROM {schema}.outbox_actions WHERE event_id = $1`, id.String())
}

func action() relay.Action {
	return relay.Action{ID: outbox.NewID(), Actor: "ann", Reason: "the topic is back"}
}

type order func(ctx context.Context, action relay.Action, scope relay.Scope) (relay.ActionOutcome, error)

type verb func(ctx context.Context, action relay.Action, events ...outbox.ID) ([]relay.ActionResult, error)

func (d *desk) verbs() map[string]verb {
	return map[string]verb{"redrive": d.operator.Redrive, "skip": d.operator.Skip, "release": d.operator.Release, "discard": d.operator.Discard}
}

// do runs a verb on one event.
func (d *desk) do(do verb, a relay.Action, id outbox.ID) relay.ActionResult {
	d.t.Helper()
	results, err := do(d.t.Context(), a, id)
	if err != nil {
		d.t.Fatal(err)
	}
	if len(results) != 1 || results[0].Event != id {
		d.t.Fatalf("got %+v", results)
	}
	return results[0]
}
