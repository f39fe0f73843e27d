package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

// InTx begins a pgx transaction on a pool or connection, runs fn in it, and commits. It rolls back
// when fn returns an error or panics, and also when an [Emit] inside it failed and fn did not say so:
// a business change must not commit without its event. fn must emit with the context it is given, or
// one made from it. Whoever wants to go on after a refusal handles the transaction themselves.
func InTx[T PgxTx[R], R Row](ctx context.Context, db interface {
	Begin(ctx context.Context) (T, error)
}, fn func(ctx context.Context, tx T) error,
) error {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("outbox: begin: %w", err)
	}
	return run(ctx, fn, tx,
		func() error { return tx.Commit(ctx) },
		// The rollback must reach the server also when ctx is what ended the transaction.
		func() error { return tx.Rollback(context.WithoutCancel(ctx)) },
	)
}

// InTxSQL is [InTx] for database/sql: a *sql.DB, *sql.Conn or *sqlx.DB.
func InTxSQL(ctx context.Context, db interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}, fn func(ctx context.Context, tx *sql.Tx) error,
) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("outbox: begin: %w", err)
	}
	return run(ctx, fn, tx, tx.Commit, tx.Rollback)
}

func run[T any](ctx context.Context, fn func(context.Context, T) error, tx T,
	commit, rollback func() error,
) (err error) {
	committed := false
	defer func() {
		if !committed {
			_ = rollback() // the first error, or the panic, is the one to report
		}
	}()
	var failures failures
	if err := fn(context.WithValue(ctx, failuresKey{}, &failures), tx); err != nil {
		return err
	}
	if err := failures.err(); err != nil {
		return fmt.Errorf("outbox: rolled back, because an emit failed and its error was dropped: %w", err)
	}
	crash.Point("emit.before_commit")
	if err := commit(); err != nil {
		return fmt.Errorf("outbox: commit: %w", err)
	}
	crash.Point("emit.after_commit")
	committed = true
	return nil
}

// failures collects the emits that failed inside one InTx. Not only refusals: where the driver gave up
// before the server heard of the emit, for instance at a deadline, the transaction could still commit.
type failures struct {
	mu     sync.Mutex
	errors []error
}

type failuresKey struct{}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errors...)
}

// failed notes the error of an emit for the InTx around it, if there is one, and hands it on.
func failed(ctx context.Context, err error) error {
	if f, ok := ctx.Value(failuresKey{}).(*failures); ok {
		f.mu.Lock()
		f.errors = append(f.errors, err)
		f.mu.Unlock()
	}
	return err
}
