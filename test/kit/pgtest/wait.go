package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Waiting returns when the transaction's session waits for a lock, and fails the test if it never does. Ended is closed
// when whatever should wait has not; nil: nobody tells.
func (db *DB) Waiting(t testing.TB, tx pgx.Tx, ended <-chan struct{}) {
	t.Helper()
	waits, err := Waits(t.Context(), db.Pool, tx.Conn().PgConn().PID(), ended)
	if err != nil || !waits {
		t.Fatalf("nobody waits: %v", err)
	}
}

// Waits returns true when the session waits for a lock, and false when ended is closed before.
func Waits(ctx context.Context, pool *pgxpool.Pool, session uint32, ended <-chan struct{}) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, eventually.Patience,
		errors.New("the session does not come to wait for a lock"))
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var waits bool
		err := pool.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_get_activity($1)",
			int(session)).Scan(&waits)
		if err != nil || waits {
			return waits, err
		}
		select {
		case <-ended:
			return false, nil
		case <-tick.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
