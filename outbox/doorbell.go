package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ringGap is the least time between two rings. A relay needs about as long to read what one brought.
	ringGap = 5 * time.Millisecond
	// ringTimeout bounds one ring, the wait for a free connection of the pool included.
	ringTimeout = 2 * time.Second
)

// A Doorbell wakes the relay after a commit, so that an event need not wait for the next poll. It is
// about latency alone: a ring that is lost or fails costs one poll interval. Share one among all
// transactions of a process.
//
//	bell := outbox.NewDoorbell(outbox.RingPgx(pool, "public"))
//	defer bell.Close()
//	err := bell.After(outbox.InTx(ctx, pool, placeOrder))
//
// Ring it after the commit and never before: inside the transaction the relay would look too early,
// and a NOTIFY there makes all commits of the server wait for one another.
type Doorbell struct {
	rung     chan struct{} // holds one: a ring that waits stands for all that come while it does
	closing  chan struct{}
	close    func()
	done     sync.WaitGroup
	failures atomic.Int64
}

// NewDoorbell returns a doorbell that calls ring from a goroutine of its own: one call at a time, and
// one more for everything that was rung meanwhile. The function must end with its context, which has a
// deadline; its errors and panics are only counted. Make it with [RingPgx] or [RingSQL].
func NewDoorbell(ring func(ctx context.Context) error) *Doorbell {
	d := &Doorbell{rung: make(chan struct{}, 1), closing: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closing) })
	d.done.Go(func() { d.answer(ring) })
	return d
}

// Ring asks for a wake-up and returns at once, whatever becomes of it. A nil doorbell is silent, and
// so is a closed one.
func (d *Doorbell) Ring() {
	if d == nil {
		return
	}
	select {
	case d.rung <- struct{}{}:
	default: // one waits already, and has not been sent yet
	}
}

// After rings if the transaction has committed, and hands its error on unchanged:
//
//	return bell.After(outbox.InTx(ctx, pool, fn))
func (d *Doorbell) After(committed error) error {
	if committed == nil {
		d.Ring()
	}
	return committed
}

// Failures counts the rings that failed.
func (d *Doorbell) Failures() int64 { return d.failures.Load() }

// Close sends the ring that waits, if one does, and ends the goroutine. It takes as long as two rings
// may, at most.
func (d *Doorbell) Close() {
	d.close()
	d.done.Wait()
}

func (d *Doorbell) answer(ring func(ctx context.Context) error) {
	for {
		select {
		case <-d.rung:
			d.count(ring)
		case <-d.closing:
			select {
			case <-d.rung:
				d.count(ring)
			default:
			}
			return
		}
		select {
		case <-time.After(ringGap):
		case <-d.closing:
		}
	}
}

func (d *Doorbell) count(ring func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), ringTimeout)
	defer cancel()
	defer func() {
		if recover() != nil { // a wake-up must not end the application
			d.failures.Add(1)
		}
	}()
	if err := ring(ctx); err != nil {
		d.failures.Add(1)
	}
}

// RingPgx makes the function for [NewDoorbell] from a pgxpool.Pool. Transactions and connections do
// not compile, since they have no such Close: a ring must not become part of a transaction. An empty
// schema is the default one.
func RingPgx[R any](pool interface {
	Exec(ctx context.Context, sql string, args ...any) (R, error)
	Close()
}, schema string,
) func(ctx context.Context) error {
	wake := wakeStatement(schema)
	return func(ctx context.Context) error {
		if _, err := pool.Exec(ctx, wake); err != nil {
			return fmt.Errorf("outbox: ring: %w", err)
		}
		return nil
	}
}

// RingSQL is [RingPgx] for database/sql: a *sql.DB or *sqlx.DB.
func RingSQL(db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Stats() sql.DBStats // which neither transactions nor connections have
}, schema string,
) func(ctx context.Context) error {
	wake := wakeStatement(schema)
	return func(ctx context.Context) error {
		if _, err := db.ExecContext(ctx, wake); err != nil {
			return fmt.Errorf("outbox: ring: %w", err)
		}
		return nil
	}
}

func wakeStatement(schema string) string {
	if schema == "" {
		schema = DefaultSchema
	}
	return "SELECT " + quoteIdent(schema) + ".outbox_wake()"
}
