package emit

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// env is where checks run: a fresh schema with a table of the application's own beside the outbox.
type env struct {
	*pgtest.DB
	pool *pgxpool.Pool // counts statements; see counting
}

func newEnv(t testing.TB, db *pgtest.DB) env {
	t.Helper()
	db.Exec(t, "CREATE TABLE {schema}.orders (id text PRIMARY KEY, note text NOT NULL DEFAULT '')")
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off" // nothing here crashes the server
	config.ConnConfig.Tracer = statementCounter{}
	config.MaxConns = 40
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return env{DB: db, pool: pool}
}

// onEach runs a test against every server, each in a fresh place.
func onEach(t *testing.T, test func(t *testing.T, p env)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) { test(t, newEnv(t, db)) })
}

func (p env) begin(t testing.TB) pgx.Tx {
	t.Helper()
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// order writes a business row.
func (p env) order(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, p.SQL("INSERT INTO {schema}.orders (id) VALUES ($1)"), id)
	return err
}

func (p env) mustOrder(t testing.TB, tx pgx.Tx, id string) {
	t.Helper()
	if err := p.order(t.Context(), tx, id); err != nil {
		t.Fatal(err)
	}
}

// mustEmit emits through the library.
func (p env) mustEmit(t testing.TB, tx pgx.Tx, all ...corpus.Given) []outbox.Receipt {
	t.Helper()
	receipts, err := corpus.Emit(t.Context(), tx, p.Schema, all)
	if err != nil {
		t.Fatal(err)
	}
	return receipts
}

func mustCommit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// wantRows compares the numbers of business rows, events and dedupe keys.
func (p env) wantRows(t testing.TB, orders, events, keys int) {
	t.Helper()
	for _, want := range []struct {
		table string
		rows  int
	}{{"orders", orders}, {"outbox_events", events}, {"outbox_dedupe", keys}} {
		if got := p.Count(t, "SELECT count(*) FROM {schema}."+want.table); got != want.rows {
			t.Errorf("%s has %d rows, want %d", want.table, got, want.rows)
		}
	}
}

// clear removes everything, on the way that the tables allow.
func (p env) clear(t testing.TB) {
	t.Helper()
	p.Exec(t, "UPDATE {schema}.outbox_events SET state = 7")
	for _, table := range []string{"outbox_events", "outbox_dedupe", "orders"} {
		p.Exec(t, "DELETE FROM {schema}."+table)
	}
}

type counterKey struct{}

// counting returns a context that counts the statements sent with it.
func counting(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, counterKey{}, n), n
}

type statementCounter struct{}

func (statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if n, ok := ctx.Value(counterKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	return ctx
}

func (statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
