package emit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/outboxtest"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// What follows tests outboxtest, the assertions that users call in their own tests.

type payload struct {
	N int `json:"n"`
}

var (
	counted = outbox.Define[payload](outbox.Contract{Type: "counted", Aggregate: "counter", Topic: "t"})
	other   = outbox.Define[payload](outbox.Contract{Type: "other", Aggregate: "counter", Topic: "t"})
)

// recorder is a TB that remembers how it was failed.
type recorder struct{ failures []string }

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) want(t *testing.T, parts ...string) {
	t.Helper()
	if len(parts) == 0 && len(r.failures) > 0 {
		t.Errorf("failed without a reason: %v", r.failures)
	}
	for _, part := range parts {
		if len(r.failures) == 0 || !strings.Contains(r.failures[0], part) {
			t.Errorf("want a failure with %q, got %v", part, r.failures)
		}
	}
}

func TestRequireEmittedSeesTheUncommitted(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := outbox.InSchema(db.Begin(t), db.Schema)
		event := counted.New("1", payload{N: 7})
		event.TenantID, event.DedupeKey, event.Headers = "acme", "acme/1", map[string]string{"trace": "x"}
		event.Actor = &outbox.Actor{Type: "user", ID: "u"}
		receipts, err := outbox.Emit(t.Context(), tx, event)
		if err != nil {
			t.Fatal(err)
		}
		emitted := outboxtest.RequireEmitted(t.Context(), t, tx, counted, "1")
		if emitted.Data.N != 7 || emitted.ID != receipts[0].ID || emitted.TenantID != "acme" ||
			emitted.DedupeKey != "acme/1" ||
			emitted.Headers["trace"] != "x" || emitted.Envelope.Actor.ID != "u" || emitted.Envelope.EventID != emitted.ID {
			t.Errorf("got %+v", emitted)
		}
		outboxtest.RequireNotEmitted(t.Context(), t, tx, other, "1")
		outboxtest.RequireNotEmitted(t.Context(), t, tx, counted, "2")
	})
}

func TestTheAssertionsCanFail(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := outbox.InSchema(db.Begin(t), db.Schema)
		var none recorder
		outboxtest.RequireEmitted(t.Context(), &none, tx, counted, "1")
		none.want(t, "want one counted of counter", "no events at all")

		if _, err := outbox.Emit(t.Context(), tx, counted.New("1", payload{N: 1}),
			counted.New("1", payload{N: 2})); err != nil {
			t.Fatal(err)
		}
		var two, unwanted, listed recorder
		outboxtest.RequireEmitted(t.Context(), &two, tx, counted, "1")
		two.want(t, "got 2", "counted of counter 1")
		outboxtest.RequireNotEmitted(t.Context(), &unwanted, tx, counted, "1")
		unwanted.want(t, "want no counted")
		all := outboxtest.All(t.Context(), &listed, tx, counted, "1")
		listed.want(t)
		if len(all) != 2 || all[0].Data.N != 1 || all[1].Data.N != 2 {
			t.Errorf("got %+v", all)
		}
	})
}

func TestTheAssertionsTakeDatabaseSQL(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		begun, err := pgtest.OpenSQL(t, "pgx", db.URL).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = begun.Rollback() }()
		tx := outbox.InSchemaSQL(begun, db.Schema)
		if _, err := outbox.EmitSQL(t.Context(), tx, counted.New("1", payload{N: 3})); err != nil {
			t.Fatal(err)
		}
		if emitted := outboxtest.RequireEmittedSQL(t.Context(), t, tx, counted, "1"); emitted.Data.N != 3 {
			t.Errorf("got %+v", emitted)
		}
		outboxtest.RequireNotEmittedSQL(t.Context(), t, tx, counted, "2")
		if all := outboxtest.AllSQL(t.Context(), t, tx, counted, "1"); len(all) != 1 {
			t.Errorf("got %+v", all)
		}
	})
}
