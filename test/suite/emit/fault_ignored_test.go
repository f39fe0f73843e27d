package emit

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// rejectable is refused before anything is sent, unwritable by PostgreSQL: see [TestFaultA9ErrorIgnored].
func rejectable() corpus.Given {
	event := corpus.OrderCreated(`{}`)
	event.AggregateID = ""
	return event
}

func unwritable() corpus.Given {
	event := corpus.OrderCreated(`{}`)
	event.AggregateID = "unwritable"
	return event
}

// transactor is a way for the application to run a transaction, as far as A9 is concerned: write a
// business row, emit, and never look at what emit said.
type transactor struct {
	name string
	run  func(t *testing.T, p env, event corpus.Given, after func()) error
	// keeps: a refusal that nobody looked at does not keep the transaction from committing.
	keeps bool
}

var transactors = []transactor{
	{name: "own transaction", keeps: true, run: func(t *testing.T, p env, event corpus.Given, after func()) error {
		tx := p.begin(t)
		defer func() { _ = tx.Rollback(t.Context()) }()
		p.mustOrder(t, tx, "1")
		_, _ = corpus.Emit(t.Context(), tx, p.Schema, []corpus.Given{event})
		after()
		return tx.Commit(t.Context())
	}},
	{name: "InTx", run: func(t *testing.T, p env, event corpus.Given, after func()) error {
		return outbox.InTx(t.Context(), p.pool, func(ctx context.Context, tx pgx.Tx) error {
			p.mustOrder(t, tx, "1")
			_, _ = corpus.Emit(ctx, tx, p.Schema, []corpus.Given{event})
			after()
			return nil
		})
	}},
	{name: "InTxSQL", run: func(t *testing.T, p env, event corpus.Given, after func()) error {
		db := pgtest.OpenSQL(t, "pgx", p.URL)
		return outbox.InTxSQL(t.Context(), db, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, p.SQL("INSERT INTO {schema}.orders (id) VALUES ('1')")); err != nil {
				t.Fatal(err)
			}
			_, _ = outbox.EmitSQL(ctx, outbox.InSchemaSQL(tx, p.Schema), event.Event())
			after()
			return nil
		})
	}},
}

func TestFaultA9ErrorIgnored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		// A rule that the library cannot know.
		p.Exec(t, "ALTER TABLE {schema}.outbox_events ADD CHECK (aggregate_id <> 'unwritable')")
		for _, way := range transactors {
			for what, ignore := range map[string]func(*testing.T, env, transactor){
				"refused": ignoredRejection, "mismatch": ignoredMismatch, "failed in PostgreSQL": ignoredFailure,
				"panic": ignoredPanic,
			} {
				t.Run(way.name+"/"+what, func(t *testing.T) {
					p.clear(t)
					ignore(t, p, way)
				})
			}
		}
	})
}

func nothing() {}

// wantKept: the application's own transaction commits its business row, those that watch over it do not.
func (p env) wantKept(t *testing.T, way transactor, err, rejection error, events int) {
	t.Helper()
	if way.keeps {
		if err != nil {
			t.Errorf("after a refusal the transaction must be usable: %v", err)
		}
		p.wantRows(t, 1, events, events)
		return
	}
	if !errors.Is(err, rejection) {
		t.Errorf("want the refusal that was dropped, got %v", err)
	}
	p.wantRows(t, 0, events, events)
}

func ignoredRejection(t *testing.T, p env, way transactor) {
	p.wantKept(t, way, way.run(t, p, rejectable(), nothing), outbox.ErrRefused, 0)
}

func ignoredMismatch(t *testing.T, p env, way transactor) {
	p.committed(t, corpus.OrderCreated(`{"total":1}`).WithKey("k"))
	p.wantKept(t, way, way.run(t, p, corpus.OrderCreated(`{"total":2}`).WithKey("k"), nothing),
		outbox.ErrDedupeMismatch, 1)
}

func ignoredFailure(t *testing.T, p env, way transactor) {
	if err := way.run(t, p, unwritable(), nothing); err == nil {
		t.Error("a transaction whose INSERT failed was committed")
	}
	p.wantRows(t, 0, 0, 0)
}

func ignoredPanic(t *testing.T, p env, way transactor) {
	defer func() {
		if recover() != errPanic { //nolint:errorlint // it is the very value
			t.Error("the panic did not come through")
		}
		p.wantRows(t, 0, 0, 0)
	}()
	_ = way.run(t, p, corpus.OrderCreated(`{}`), func() { panic(errPanic) })
}

var errPanic = errors.New("panic in the application")

// committed emits in a transaction of its own.
func (p env) committed(t testing.TB, event corpus.Given) outbox.ID {
	t.Helper()
	tx := p.begin(t)
	receipts := p.mustEmit(t, tx, event)
	mustCommit(t, tx)
	return receipts[0].ID
}

// An emit that the driver gave up before the server heard of it leaves a transaction that could commit. It is as much
// of a failure as a refusal.
func TestFaultA9NeverSent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		db := pgtest.OpenSQL(t, "pgx", p.URL)
		for name, run := range map[string]func() error{
			"InTx": func() error {
				return outbox.InTx(t.Context(), p.pool, func(ctx context.Context, tx pgx.Tx) error {
					p.mustOrder(t, tx, "1")
					over, cancel := context.WithCancel(ctx)
					cancel()
					_, _ = corpus.Emit(over, tx, p.Schema, []corpus.Given{corpus.OrderCreated(`{}`)})
					return tx.Conn().Ping(ctx) // it is usable still
				})
			},
			"InTxSQL": func() error {
				return outbox.InTxSQL(t.Context(), db, func(ctx context.Context, tx *sql.Tx) error {
					over, cancel := context.WithCancel(ctx)
					cancel()
					_, _ = outbox.EmitSQL(over, outbox.InSchemaSQL(tx, p.Schema), corpus.OrderCreated(`{}`).Event())
					_, err := tx.ExecContext(ctx, p.SQL("INSERT INTO {schema}.orders (id) VALUES ('1')"))
					return err
				})
			},
		} {
			if err := run(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: want the error of the emit that was dropped, got %v", name, err)
			}
			p.wantRows(t, 0, 0, 0)
		}
	})
}

// InTx commits when all is well, and hands on an error of its function.
func TestFaultA9NothingIgnored(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		if err := outbox.InTx(t.Context(), p.pool, func(ctx context.Context, tx pgx.Tx) error {
			p.mustOrder(t, tx, "good")
			_, err := corpus.Emit(ctx, tx, p.Schema, []corpus.Given{corpus.OrderCreated(`{}`)})
			return err
		}); err != nil {
			t.Error(err)
		}
		own := errors.New("the application's own")
		err := outbox.InTx(t.Context(), p.pool, func(ctx context.Context, tx pgx.Tx) error {
			p.mustOrder(t, tx, "bad")
			_, _ = corpus.Emit(ctx, tx, p.Schema, []corpus.Given{corpus.OrderCreated(`{}`)})
			return own
		})
		if !errors.Is(err, own) {
			t.Errorf("got %v", err)
		}
		p.wantRows(t, 1, 1, 0)
	})
}

func TestFaultA10SavepointRolledBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		tx := p.begin(t)
		p.mustOrder(t, tx, "1")
		p.mustEmit(t, tx, corpus.OrderCreated(`{"n":1}`))
		savepoint, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.mustOrder(t, savepoint, "2")
		p.mustEmit(t, savepoint, corpus.OrderCreated(`{"n":2}`).WithKey("k"), corpus.OrderCreated(`{"n":3}`))
		if err := savepoint.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The key went with the savepoint: other content under it is no mismatch.
		if receipts := p.mustEmit(t, tx, corpus.OrderCreated(`{"n":4}`).WithKey("k")); !receipts[0].Created {
			t.Error("the savepoint left its dedupe key behind")
		}
		mustCommit(t, tx)
		p.wantRows(t, 1, 2, 1)
		if n := p.Count(t,
			`SELECT count(*) FROM {schema}.outbox_events WHERE payload_json -> 'data' ->> 'n' IN ('1', '4')`); n != 2 {
			t.Errorf("%d of the two events that were kept", n)
		}
	})
}
