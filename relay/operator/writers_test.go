package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// begin opens a transaction that does something, and returns it with the words by which it is named.
func (e *env) begin(does string, args ...any) (tx pgx.Tx, named string) {
	e.t.Helper()
	tx, err := e.admin.Begin(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(e.t.Context(), e.sql(does), args...); err != nil {
		e.t.Fatal(err)
	}
	return tx, fmt.Sprintf("pid %d ", tx.Conn().PgConn().PID())
}

const insertEvent = `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
	VALUES ($1::text::uuid, 'order_created', 'order', $2, json_build_object('eventId', $1::text))`

// TestExplainNamesNoOtherTransaction: a writer is one that has drawn a number here. One that only writes into another
// table of the outbox, or events of another one, is none.
func TestExplainNamesNoOtherTransaction(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		missing := outbox.NewID()
		_, writer := e.begin(insertEvent, missing.String(), "1")
		_, other := e.begin("LOCK TABLE {schema}.outbox_pauses IN ROW EXCLUSIVE MODE")
		found, err := e.operator.Explain(t.Context(), missing)
		if err != nil {
			t.Fatal(err)
		}
		all := fmt.Sprintf("%+v", found.Causes)
		if len(found.Causes) != 2 || found.Causes[1].Code != operator.CauseOpenWriter || !strings.Contains(all, writer) ||
			strings.Contains(all, other) || strings.Count(all, "pid ") != 1 {
			t.Errorf("%sis the writer, and it says %s", writer, all)
		}
	})
}

// TestOpenWriters lists who has drawn a number and has not ended, and nobody else; since when, for those who may
// see it.
func TestOpenWriters(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		if found, err := e.operator.OpenWriters(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("of nobody: %+v, %v", found, err)
		}
		tx, _ := e.begin(insertEvent, outbox.NewID().String(), "1")
		e.begin("LOCK TABLE {schema}.outbox_pauses IN ROW EXCLUSIVE MODE")
		for _, sees := range []bool{false, true} {
			if sees {
				e.exec("GRANT pg_read_all_stats TO operator_" + e.schema)
			}
			found, err := e.operator.OpenWriters(t.Context())
			if err != nil || len(found) != 1 || found[0].PID != int(tx.Conn().PgConn().PID()) || found[0].Role == "" ||
				(found[0].Since != nil) != sees || (found[0].State == "idle in transaction") != sees {
				t.Errorf("one that sees: %t: %+v, %v", sees, found, err)
			}
		}
	})
}

// TestCommandsNameTheSchema: what is printed to be pasted is about the outbox that was looked at.
func TestCommandsNameTheSchema(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := outbox.NewID()
		if _, err := e.admin.Exec(t.Context(), e.sql(insertEvent), id.String(), "1"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.admin.Exec(t.Context(), e.sql(`INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason)
			VALUES ('all', '', 'ada', 'x')`)); err != nil {
			t.Fatal(err)
		}
		found, err := e.operator.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		status, err := e.operator.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"--schema %s resume --all", "--schema %s pauses", "--schema %s relays --all"} {
			if want = "outboxctl " + fmt.Sprintf(want, e.schema); !strings.Contains(fmt.Sprint(found, status.Reasons), want) {
				t.Errorf("no %s in\n%+v\n%+v", want, found.Causes, status.Reasons)
			}
		}
	})
}
