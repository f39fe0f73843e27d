package memstore

import (
	"context"
	"errors"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// ErrInjected is the error of a call that a plan let fail.
var ErrInjected = errors.New("memstore: injected: the connection is lost")

// Fault is what a plan does to one call.
type Fault uint8

// The faults. A delay is not among them: a simulation delays by delivering the answer later.
const (
	None    Fault = iota
	NotDone       // the call fails before anything is done
	Lost          // the call is done, and its answer is lost
)

// Operation is the name of a method of [core.Store].
type Operation string

// Plan decides what happens to the next call of an operation. Fed from a seeded source, it replays.
type Plan func(operation Operation) Fault

// Faulty is a store whose calls fail by plan.
type Faulty struct {
	Store core.Store
	Plan  Plan
}

var _ core.Store = (*Faulty)(nil)

// call does one call by plan. A lost answer is nobody's: not even a part of it comes back.
func call[A any](f *Faulty, operation Operation, do func() (A, error)) (A, error) {
	var none A
	switch f.Plan(operation) {
	case NotDone:
		return none, ErrInjected
	case Lost:
		if _, err := do(); err != nil {
			return none, err
		}
		return none, ErrInjected
	case None:
	}
	return do()
}

// callNothing is call for operations that answer nothing.
func callNothing(f *Faulty, operation Operation, do func() error) error {
	_, err := call(f, operation, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Heartbeat by plan.
func (f *Faulty) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	return call(f, "Heartbeat", func() (core.HeartbeatAnswer, error) { return f.Store.Heartbeat(ctx, beat) })
}

// EndExpired by plan.
func (f *Faulty) EndExpired(ctx context.Context, end core.EndExpired) ([]outbox.ID, error) {
	return call(f, "EndExpired", func() ([]outbox.ID, error) { return f.Store.EndExpired(ctx, end) })
}

// Acquire by plan.
func (f *Faulty) Acquire(ctx context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	return call(f, "Acquire", func() (core.AcquireAnswer, error) { return f.Store.Acquire(ctx, take) })
}

// Release by plan.
func (f *Faulty) Release(ctx context.Context, give core.Release) error {
	return callNothing(f, "Release", func() error { return f.Store.Release(ctx, give) })
}

// Fence by plan.
func (f *Faulty) Fence(ctx context.Context) (core.Fence, error) {
	return call(f, "Fence", func() (core.Fence, error) { return f.Store.Fence(ctx) })
}

// Read by plan.
func (f *Faulty) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	return call(f, "Read", func() (core.ReadAnswer, error) { return f.Store.Read(ctx, read) })
}

// Barrier by plan.
func (f *Faulty) Barrier(ctx context.Context, incarnation string) error {
	return callNothing(f, "Barrier", func() error { return f.Store.Barrier(ctx, incarnation) })
}

// Unpark by plan.
func (f *Faulty) Unpark(ctx context.Context, unpark core.Unpark) (core.UnparkAnswer, error) {
	return call(f, "Unpark", func() (core.UnparkAnswer, error) { return f.Store.Unpark(ctx, unpark) })
}

// HeldKeys by plan.
func (f *Faulty) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	return call(f, "HeldKeys", func() (core.KeysAnswer, error) { return f.Store.HeldKeys(ctx, held) })
}

// DueKeys by plan.
func (f *Faulty) DueKeys(ctx context.Context, due core.DueKeys) (core.KeysAnswer, error) {
	return call(f, "DueKeys", func() (core.KeysAnswer, error) { return f.Store.DueKeys(ctx, due) })
}

// HeldRows by plan.
func (f *Faulty) HeldRows(ctx context.Context, held core.HeldRows) (core.RowsAnswer, error) {
	return call(f, "HeldRows", func() (core.RowsAnswer, error) { return f.Store.HeldRows(ctx, held) })
}

// OldParked by plan.
func (f *Faulty) OldParked(ctx context.Context, old core.OldParked) (core.ParkedAnswer, error) {
	return call(f, "OldParked", func() (core.ParkedAnswer, error) { return f.Store.OldParked(ctx, old) })
}

// Settle by plan.
func (f *Faulty) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	return call(f, "Settle", func() (core.SettleAnswer, error) { return f.Store.Settle(ctx, settle) })
}

// Note by plan.
func (f *Faulty) Note(ctx context.Context, note core.Note) (bool, error) {
	return call(f, "Note", func() (bool, error) { return f.Store.Note(ctx, note) })
}

// TakeRequests by plan.
func (f *Faulty) TakeRequests(ctx context.Context, take core.TakeRequests) (core.RequestsAnswer, error) {
	return call(f, "TakeRequests", func() (core.RequestsAnswer, error) { return f.Store.TakeRequests(ctx, take) })
}

// SettleRequests by plan.
func (f *Faulty) SettleRequests(ctx context.Context, settle *core.SettleRequests) (core.SettleAnswer, error) {
	return call(f, "SettleRequests", func() (core.SettleAnswer, error) { return f.Store.SettleRequests(ctx, settle) })
}

// Sweep by plan.
func (f *Faulty) Sweep(ctx context.Context, sweep core.Sweep) (core.SweepAnswer, error) {
	return call(f, "Sweep", func() (core.SweepAnswer, error) { return f.Store.Sweep(ctx, sweep) })
}

// SaveRoutes by plan.
func (f *Faulty) SaveRoutes(ctx context.Context, relay outbox.ID, statuses []core.RouteStatus) error {
	return callNothing(f, "SaveRoutes", func() error { return f.Store.SaveRoutes(ctx, relay, statuses) })
}
