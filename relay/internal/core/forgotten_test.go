package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// unheard is a store whose takes of requests are done, and not answered; or given up, and done later.
type unheard struct {
	core.Store
	losing, holding bool
	held            []core.TakeRequests
}

func (u *unheard) TakeRequests(ctx context.Context, take core.TakeRequests) (core.RequestsAnswer, error) {
	switch {
	case u.holding:
		u.held = append(u.held, take)
		return core.RequestsAnswer{}, memstore.ErrInjected
	case u.losing:
		if _, err := u.Store.TakeRequests(ctx, take); err != nil {
			return core.RequestsAnswer{}, err
		}
		return core.RequestsAnswer{}, memstore.ErrInjected
	default:
		return u.Store.TakeRequests(ctx, take)
	}
}

// lateGiveBack is a store that gives a settle up, and has it done later.
type lateGiveBack struct {
	unheard
	holding bool
	held    *core.SettleRequests
}

func (l *lateGiveBack) SettleRequests(ctx context.Context, settle *core.SettleRequests) (core.SettleAnswer, error) {
	if l.holding {
		l.holding, l.held = false, settle
		return core.SettleAnswer{}, memstore.ErrInjected
	}
	return l.Store.SettleRequests(ctx, settle)
}

// doLate does what was held.
func (u *unheard) doLate(t *testing.T) {
	t.Helper()
	for _, take := range u.held {
		if _, err := u.Store.TakeRequests(t.Context(), take); err != nil {
			t.Fatal(err)
		}
	}
}

// pauses are all that can hold a copy back.
var pauses = map[core.Scope]string{core.ScopeAll: "", core.ScopeTopic: "topic", core.ScopeType: "a"}

// TestACancelDoesNotWaitForATakeWithoutAnswer: the database says that the relay has the copies, and the relay does not
// know of them. That a pause keeps it from taking them again must not keep them from whoever cancels them.
func TestACancelDoesNotWaitForATakeWithoutAnswer(t *testing.T) {
	t.Parallel()
	for scope, name := range pauses {
		for how, late := range map[string]bool{"answer lost": false, "done late": true} {
			t.Run(string(scope)+", "+how, func(t *testing.T) {
				t.Parallel()
				d := newRedelivery(t, nil)
				via := &unheard{Store: d.store, losing: !late, holding: late}
				d.via = via
				action := d.ask("")
				d.pass(1500 * time.Millisecond)
				d.pause(t, scope, name)
				d.pass(heard)
				via.losing, via.holding = false, false
				via.doLate(t)
				if _, inHands, err := d.cancel(action); inHands != len(d.events) || err != nil {
					t.Fatalf("%d are in hands, %v", inHands, err)
				}
				d.cancelAll(action, 5*time.Second)
				d.resume(t, scope, name)
				d.pass(time.Minute)
				if len(d.copies) > 0 {
					t.Errorf("sent %s", d.order())
				}
				d.untouched(t)
			})
		}
	}
}

// TestCopiesAreInOrderAfterATakeWithoutAnswer: those that were taken twice, and those that were given back.
func TestCopiesAreInOrderAfterATakeWithoutAnswer(t *testing.T) {
	t.Parallel()
	for scope, name := range pauses {
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			d := newRedelivery(t, nil)
			via := &unheard{Store: d.store, losing: true}
			d.via = via
			d.ask("")
			d.pass(1500 * time.Millisecond)
			d.pause(t, scope, name)
			d.pass(heard)
			via.losing = false
			d.pass(5 * time.Second)
			for _, r := range d.store.Requests() {
				if r.Taken > 0 {
					t.Errorf("request %d is in somebody's hands", r.ID)
				}
			}
			d.resume(t, scope, name)
			d.pass(10 * time.Second)
			if got := d.order(); got != "a1 b1 a2 b2 a3 b3" {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// TestNobodyAsksForLongWhereNothingMayGo: a take without an answer is followed by others for a lease, and then by one
// per lease.
func TestNobodyAsksForLongWhereNothingMayGo(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	via := &unheard{Store: d.store, losing: true}
	d.via = via
	d.ask("")
	d.pass(1500 * time.Millisecond)
	d.pause(t, core.ScopeAll, "")
	d.pass(heard)
	via.losing = false
	d.pass(time.Minute)
	before := d.calls[core.OpTakeRequests]
	d.pass(time.Minute)
	if n := d.calls[core.OpTakeRequests] - before; n > 2 || before == 0 {
		t.Errorf("asked %d times, and before that %d", n, before)
	}
}

// TestWhatIsInMemoryStaysInHands: a copy that is in flight is not given back by the takes beside it.
func TestWhatIsInMemoryStaysInHands(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	held := true
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, !held
	}
	action := d.ask("")
	d.pass(3 * time.Second)
	before := d.calls[core.OpTakeRequests]
	d.pass(4 * time.Second)
	if d.calls[core.OpTakeRequests] == before {
		t.Fatal("nothing was asked beside the copies in flight")
	}
	if _, inHands, err := d.cancel(action); inHands != len(d.events) || err != nil {
		t.Errorf("of %d copies that the relay has %d are in hands, %v", len(d.events), inHands, err)
	}
}

// TestAGiveBackThatIsDoneLateTakesNothingAway: its repetition has given the copies back, and they are taken again and
// sent. A cancel leaves those to the relay, which has them.
func TestAGiveBackThatIsDoneLateTakesNothingAway(t *testing.T) {
	t.Parallel()
	d := newRedelivery(t, nil)
	via := &lateGiveBack{unheard: unheard{Store: d.store, losing: true}}
	d.via = via
	action := d.ask("")
	d.pass(1500 * time.Millisecond)
	d.pause(t, core.ScopeTopic, "topic")
	d.pass(heard)
	via.losing, via.holding = false, true
	d.pass(3 * time.Second)
	if via.held == nil {
		t.Fatal("nothing was given back")
	}
	silent := true
	answer := d.rig.answer
	d.rig.answer = func(p *core.Publish) (core.Outcome, bool) {
		outcome, _ := answer(p)
		return outcome, !silent
	}
	d.resume(t, core.ScopeTopic, "topic")
	d.pass(3 * time.Second)
	if _, err := d.store.SettleRequests(t.Context(), via.held); err != nil {
		t.Fatal(err)
	}
	if canceled, inHands, err := d.cancel(action); canceled > 0 || inHands != len(d.events) || err != nil {
		t.Errorf("%d are canceled and %d in hands, %v", canceled, inHands, err)
	}
	silent = false
	d.pass(10 * time.Second)
}

// TestATakeThatIsDoneVeryLateIsFound: more than a lease after it was given up, while nothing may go; and where a lease
// is shorter than the pause between calls that fail.
func TestATakeThatIsDoneVeryLateIsFound(t *testing.T) {
	t.Parallel()
	found := func(t *testing.T, d *redelivery, action outbox.ID) {
		t.Helper()
		d.pass(time.Minute)
		if _, inHands, err := d.cancel(action); inHands > 0 || err != nil {
			t.Errorf("%d are in hands, %v", inHands, err)
		}
	}
	t.Run("done late", func(t *testing.T) {
		t.Parallel()
		d := newRedelivery(t, nil)
		via := &unheard{Store: d.store, holding: true}
		d.via = via
		action := d.ask("")
		d.pass(1500 * time.Millisecond)
		d.pause(t, core.ScopeAll, "")
		d.pass(heard)
		via.holding = false
		d.pass(40 * time.Second)
		via.doLate(t)
		found(t, d, action)
	})
	t.Run("short lease", func(t *testing.T) {
		t.Parallel()
		d := newRedelivery(t, func(c *core.Config) {
			c.Lease, c.Deadline, c.Margin = 3*time.Second, time.Second, 100*time.Millisecond
		})
		via := &unheard{Store: d.store, losing: true}
		d.via = via
		action := d.ask("")
		d.pass(time.Minute)
		d.pause(t, core.ScopeAll, "")
		d.pass(heard)
		via.losing = false
		found(t, d, action)
	})
}
