package outbox

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Fault W3: very many rings at once. In a bubble the clock moves only when everybody waits, so they take
// exactly one second.
func TestDoorbellCoalescesManyRings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, steps = 1_000_000, 1000
		rings := 0
		bell := NewDoorbell(func(context.Context) error { rings++; return nil })
		for range steps {
			for range calls / steps {
				bell.Ring()
			}
			time.Sleep(time.Second / steps) // synctest
		}
		bell.Close()
		if most := int(time.Second/ringGap) + 2; rings < most/2 || rings > most {
			t.Errorf("%d rings for %d, want between %d and %d", rings, calls, most/2, most)
		}
	})
}

// The last ring is never lost: whoever rings while a ring runs is answered by another one after it.
func TestDoorbellAnswersWhoRangDuringARing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, finish, rings := make(chan struct{}), make(chan struct{}), 0
		bell := NewDoorbell(func(context.Context) error {
			rings++
			running <- struct{}{}
			<-finish
			return nil
		})
		bell.Ring()
		<-running
		for range 100 {
			bell.Ring()
		}
		finish <- struct{}{}
		<-running
		finish <- struct{}{}
		synctest.Wait()
		if rings != 2 {
			t.Errorf("%d rings, want the one that ran and one for all that came meanwhile", rings)
		}
		bell.Close()
	})
}

func TestDoorbellNeverBlocksTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bell := NewDoorbell(func(ctx context.Context) error {
			<-ctx.Done() // a pool without a free connection
			return ctx.Err()
		})
		begin := time.Now()
		for range 1000 {
			bell.Ring()
			synctest.Wait()
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("the callers waited %v", took)
		}
		bell.Close()
		if took := time.Since(begin); took > 2*ringTimeout+ringGap {
			t.Errorf("it took %v to close", took)
		}
		if bell.Failures() != 2 {
			t.Errorf("%d failures, want the ring that ran and the one that waited", bell.Failures())
		}
	})
}

func TestDoorbellSwallowsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rings int
		bell := NewDoorbell(func(context.Context) error {
			rings++
			switch rings {
			case 1:
				return errors.New("no such function")
			case 2:
				panic("a driver's bug")
			}
			return nil
		})
		for range 3 {
			bell.Ring()
			time.Sleep(2 * ringGap) // synctest
		}
		bell.Close()
		if rings != 3 || bell.Failures() != 2 {
			t.Errorf("%d rings and %d failures, want 3 and 2", rings, bell.Failures())
		}
	})
}

// A bubble fails the test when a goroutine is left in it.
func TestDoorbellLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rings := 0
		bell := NewDoorbell(func(context.Context) error { rings++; return nil })
		bell.Ring()
		bell.Close()
		bell.Close()
		if rings != 1 {
			t.Errorf("%d rings, want the one that waited when it was closed", rings)
		}
		bell.Ring()
		synctest.Wait()
		if rings != 1 {
			t.Error("a closed doorbell rang")
		}
		var none *Doorbell
		none.Ring()
	})
}

func TestDoorbellRingsAfterACommitOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rings := 0
		bell := NewDoorbell(func(context.Context) error { rings++; return nil })
		failure := errors.New("rolled back")
		if err := bell.After(failure); err != failure { //nolint:errorlint // the very error, not one around it
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if rings != 0 {
			t.Error("it rang for a transaction that did not commit")
		}
		if err := bell.After(nil); err != nil {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if rings != 1 {
			t.Errorf("%d rings after a commit", rings)
		}
		bell.Close()
	})
}

// pool stands for what a driver has; the statement is all that matters here. Real ones are in
// test/suite/emit.
type pool struct {
	sent atomic.Pointer[string]
	err  error
}

func (p *pool) Exec(_ context.Context, sql string, _ ...any) (struct{}, error) {
	p.sent.Store(&sql)
	return struct{}{}, p.err
}

func (p *pool) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	p.sent.Store(&query)
	return nil, p.err
}

func (p *pool) Stats() sql.DBStats { return sql.DBStats{} }
func (p *pool) Close()             {}

func TestRingsCallTheSchemasOwnFunction(t *testing.T) {
	t.Parallel()
	p := &pool{}
	for schema, want := range map[string]string{
		"":         `SELECT "public".outbox_wake()`,
		`bil"ling`: `SELECT "bil""ling".outbox_wake()`,
	} {
		for _, ring := range []func(context.Context) error{RingPgx(p, schema), RingSQL(p, schema)} {
			p.sent.Store(nil)
			if err := ring(t.Context()); err != nil || *p.sent.Load() != want {
				t.Errorf("got %v, %s, want %s", err, *p.sent.Load(), want)
			}
		}
	}
	p.err = errors.New("down")
	if err := RingPgx(p, "")(t.Context()); !errors.Is(err, p.err) {
		t.Errorf("got %v", err)
	}
	if err := RingSQL(p, "")(t.Context()); !errors.Is(err, p.err) {
		t.Errorf("got %v", err)
	}
}
