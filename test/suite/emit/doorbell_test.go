package emit_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// The doorbell: waking the relay is no part of a producer's transaction. No emit notifies before its commit (fault W2),
// and no trouble of the doorbell reaches the application (EM-12).

// A log has every statement of an application, and whether it ran in a transaction.
type log struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	statement string
	inTx      bool
}

// TraceQueryStart is called by pgx before it sends a statement.
func (l *log) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry{data.SQL, conn.PgConn().TxStatus() != 'I'})
	return ctx
}

// TraceQueryEnd is not needed.
func (l *log) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count says how often the outbox was written to and the bell was rung, and how many rings were part of
// a transaction.
func (l *log) count() (emits, rings, inTx int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		text := strings.ToLower(e.statement)
		switch {
		case strings.Contains(text, "outbox_wake") || strings.Contains(text, "notify"):
			rings++
			if e.inTx {
				inTx++
			}
		case e.inTx && (strings.Contains(text, "outbox_events") || strings.Contains(text, "outbox_emit")):
			emits++
		}
	}
	return emits, rings, inTx
}

// logged connects pgx and database/sql so that every statement is in the log.
func logged(t *testing.T, p env) (*log, *pgxpool.Pool, *sql.DB) {
	t.Helper()
	statements := &log{}
	config, err := pgxpool.ParseConfig(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.Tracer = statements
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	std := stdlib.OpenDB(*config.ConnConfig)
	std.SetMaxOpenConns(8)
	t.Cleanup(func() { _ = std.Close() })
	return statements, pool, std
}

// An application with doorbells, on both drivers and in SQL. The rings use the pools of the
// transactions, as they would in life.
func TestTheStatementLogHasNoRingInATransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		const workers, each = 4, 25
		const emitted, asked = 3 * workers * each, 5 * workers * each // of sellOnce
		statements, pool, std := logged(t, p)
		heard := listen(t, p)
		var bells []*outbox.Doorbell
		for _, ring := range []func(context.Context) error{outbox.RingPgx(pool, p.Schema), outbox.RingSQL(std, p.Schema)} {
			// A ring gives up after some seconds. These have as long as a busy machine needs.
			bells = append(bells, outbox.NewDoorbell(func(context.Context) error { return ring(t.Context()) }))
		}
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for range each {
					if err := sellOnce(t.Context(), p, pool, std, bells); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		for _, bell := range bells {
			bell.Close()
			if bell.Failures() > 0 {
				t.Errorf("%d rings failed", bell.Failures())
			}
		}
		if payload := <-heard; payload != p.Schema {
			t.Errorf("heard %q, want %q", payload, p.Schema)
		}
		emits, rings, inTx := statements.count()
		if inTx > 0 {
			t.Errorf("%d of %d rings were part of a transaction", inTx, rings)
		}
		if emits != emitted || rings < 2 || rings > asked { // how many rings became one is a matter of the machine
			t.Errorf("%d emits and %d rings: the log is not of this run", emits, rings)
		}
		t.Logf("wakeup emits=%d rings=%d rings_in_transaction=%d", emits, rings, inTx)
	})
}

// sellOnce emits in three transactions and rings after each. In two it rings before their end as well, which is too
// early but must do no harm.
func sellOnce(ctx context.Context, p env, pool *pgxpool.Pool, std *sql.DB, bells []*outbox.Doorbell) error {
	err := bells[0].After(outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), orders(2, false)...)
		bells[0].Ring()
		return err
	}))
	if err != nil {
		return err
	}
	err = bells[1].After(outbox.InTxSQL(ctx, std, func(ctx context.Context, tx *sql.Tx) error {
		_, err := outbox.EmitSQL(ctx, outbox.InSchemaSQL(tx, p.Schema), orders(1, true)...)
		bells[1].Ring()
		return err
	}))
	if err != nil {
		return err
	}
	return bells[0].After(outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, p.SQL("SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')"))
		return err
	}))
}

// listen returns a channel with the payload of this schema's first notification.
func listen(t *testing.T, p env) <-chan string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "LISTEN posthaste"); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	var group sync.WaitGroup
	group.Go(func() {
		defer close(heard)
		for {
			notification, err := conn.WaitForNotification(ctx)
			if err != nil {
				return
			}
			if notification.Payload == p.Schema { // other tests ring as well
				heard <- notification.Payload
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
		_ = conn.Close(context.Background())
	})
	return heard
}

// The log must see a ring in a transaction, in whichever words.
func TestTheLogSeesARingInATransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		statements, pool, std := logged(t, p)
		for i, mutant := range []string{
			"SELECT {schema}.outbox_wake()", "NOTIFY posthaste", "SELECT pg_notify('posthaste', 'x')",
		} {
			err := outbox.InTx(t.Context(), pool, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, p.SQL(mutant))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			err = outbox.InTxSQL(t.Context(), std, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, p.SQL(mutant))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, rings, inTx := statements.count(); rings != 2*(i+1) || inTx != rings {
				t.Errorf("%s: %d rings, %d of them seen in a transaction", mutant, rings, inTx)
			}
		}
	})
}

// EM-12: a wake-up that cannot work fails nothing but itself.
func TestAFailedRingFailsNoTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		closed := p.Open(t, p.URL)
		closed.Close()
		for name, ring := range map[string]func(context.Context) error{
			"no such function":  outbox.RingPgx(p.Pool, "there is no such schema"),
			"no such one, std":  outbox.RingSQL(p.std, "there is no such schema"),
			"the pool is ended": outbox.RingPgx(closed, p.Schema),
		} {
			bell := outbox.NewDoorbell(ring)
			err := bell.After(outbox.InTx(t.Context(), p.Pool, func(ctx context.Context, tx pgx.Tx) error {
				bell.Ring()
				_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), orders(1, false)...)
				return err
			}))
			bell.Close()
			if err != nil || bell.Failures() == 0 {
				t.Errorf("%s: got %v and %d failures", name, err, bell.Failures())
			}
		}
		if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	})
}
