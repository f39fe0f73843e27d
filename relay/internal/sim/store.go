package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

var (
	errConnection = errors.New("sim: the connection is lost")
	errTimeout    = errors.New("sim: canceling statement due to statement timeout")
)

// connection is the store as one call of one relay reaches it.
type connection struct {
	*memstore.Store
	relay *relayProcess
	half  memstore.FenceHalf // of a call that is a fence
	early core.Fence         // only of one that does it in the wrong order
	late  bool               // its answer did not arrive in time
	lost  bool               // it is done, and its answer is lost
	took  bool               // it has taken requests
}

// faulty returns the store for one call, with the fault that is to happen to it. A call that was on its
// way when the server went down is not done.
func (relay *relayProcess) faulty(op core.Op, sent int, connection *connection) core.Store {
	sim := relay.sim
	var store core.Store = connection
	if sim.mutant.Store != nil {
		store = sim.mutant.Store(sim, store)
	}
	fault := memstore.None
	switch {
	case sent != sim.incarnation, sim.unreachable(sim.now), sim.hit(StoreFailed):
		fault = memstore.NotDone
	case sim.losing == op, sim.hit(StoreAnswerLost):
		fault, connection.lost = memstore.Lost, true
	default:
		return store
	}
	sim.logf("%s %s fault=%d", relay.name, op, fault)
	return &memstore.Faulty{Store: store, Plan: func(memstore.Operation) memstore.Fault { return fault }}
}

// onStandby does something in the database, on a server in recovery if that is where this relay's calls
// go now.
func (sim *Simulation) onStandby(relay *relayProcess, do func()) {
	if sim.standbyFor != relay || sim.now >= sim.standbyEnd || sim.healed {
		do()
		return
	}
	sim.store.SetStandby(true)
	do()
	sim.store.SetStandby(false)
}

// heartbeatStore notes whether a heartbeat was answered.
type heartbeatStore struct {
	core.Store
	beat bool
}

// Heartbeat of the store.
func (h *heartbeatStore) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	answer, err := h.Store.Heartbeat(ctx, beat)
	h.beat = err == nil
	return answer, err
}

// Heartbeat of the store, which tells under which id the relay is there.
func (c *connection) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	c.relay.sim.owners[beat.Relay] = c.relay.name
	return c.Store.Heartbeat(ctx, beat)
}

// beginFence reads the sequence.
func (c *connection) beginFence() {
	c.half = c.FenceBegin()
	if c.relay.sim.mutant.WritersFirst {
		c.early, _ = c.half.End()
	}
}

// Fence lists the writers, some time after it has read the sequence.
func (c *connection) Fence(context.Context) (core.Fence, error) {
	fence, err := c.half.End()
	if err != nil {
		return core.Fence{}, errConnection
	}
	if c.relay.sim.mutant.WritersFirst {
		fence.Last, fence.Writers = c.last(), c.early.Writers
	}
	return fence, nil
}

// Read writes down what was read, and may be the last that the server did.
func (c *connection) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	answer, err := c.Store.Read(ctx, read)
	c.relay.sim.logRead(&read, &answer)
	if len(answer.Events) > 0 {
		c.relay.sim.crashAfterRead()
	}
	if err == nil && c.relay.sim.plan.tooLarge(answer.Events) {
		c.relay.sim.count(TimeoutBySize)
		c.late = true
		return core.ReadAnswer{}, errTimeout
	}
	return answer, err
}

// Settle lets an operator see at once who died. A relay that does not learn of its settle sends it again after that.
func (c *connection) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	answer, err := c.Store.Settle(ctx, settle)
	if err == nil && answer.Applied {
		c.relay.sim.redriveSome(settle.Dead) //nolint:contextcheck // the operator does not act within the call
	}
	return answer, err
}

// TakeRequests notes whether there is something that its relay must learn of.
func (c *connection) TakeRequests(ctx context.Context, take core.TakeRequests) (core.RequestsAnswer, error) {
	answer, err := c.Store.TakeRequests(ctx, take)
	c.took = err == nil && len(answer.Requests) > 0
	return answer, err
}

// tooLarge tells whether the link takes longer for these rows than a statement may.
func (p *plan) tooLarge(rows []core.Event) bool {
	bytes := 0
	for i := range rows {
		bytes += rows[i].Bytes()
	}
	return p.mostRows > 0 && len(rows) > p.mostRows || p.mostBytes > 0 && bytes > p.mostBytes
}

// logRead writes a read down, for people.
func (sim *Simulation) logRead(read *core.Read, answer *core.ReadAnswer) {
	if sim.trace == nil {
		return
	}
	var found strings.Builder
	for i := range answer.Events {
		fmt.Fprintf(&found, " %s/%d", short(answer.Events[i].ID), answer.Events[i].Seq)
	}
	sim.logf("  read exclude=%v lanes=%v found%s gone=%v stopped=%t", read.Exclude, read.Lanes, found.String(),
		answer.Gone,
		answer.Stopped)
}

// crashAfterRead restarts the server at the worst time, or kills one of its backends: rows that are not durable yet
// were read, and the barrier is still to come.
func (sim *Simulation) crashAfterRead() {
	fault, crash := DatabaseRestart, (*Simulation).restartDatabase
	if sim.plan.rate[fault] == 0 || sim.plan.rate[BackendKilled] > 0 && sim.transactions%2 == 0 {
		fault, crash = BackendKilled, (*Simulation).killBackend
	}
	fresh := sim.committedAsync != 0 && sim.now-sim.committedAsync < 30*time.Millisecond
	if sim.healed || !fresh || sim.plan.rate[fault] == 0 || !sim.chance(0.2) {
		return
	}
	sim.after(10*time.Microsecond, func() {
		crash(sim)
		sim.count(fault)
	})
}

// last is the sequence's value now.
func (c *connection) last() int64 {
	fence, err := c.FenceBegin().End()
	if err != nil {
		return 0
	}
	return fence.Last
}
