package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// mutantCase is a bug, and the counters by which it must be seen.
type mutantCase struct {
	name   string
	mutant Mutant
	seen   []check.Counter // nil: a problem that the checker does not know
}

// wrap makes a mutant of a wrapper.
func wrap(f func(sim *Simulation, store core.Store) core.Store) Mutant { return Mutant{Store: f} }

// without is a store some of whose answers are wrong.
type without struct {
	core.Store
	sim *Simulation

	noToken, dropsSettles, doubleCharges, noBarrier, noStandby, noCut, noGone, noHeld, endsAnybody, noParking, noPauses,
	noFound, dropsRequests, turnsRequests, countsReturned, forgetsTaken, noForgotten, noLimits bool
}

func (s *without) TakeRequests(ctx context.Context, take core.TakeRequests) (core.RequestsAnswer, error) {
	answer, err := s.Store.TakeRequests(ctx, take)
	if s.turnsRequests {
		slices.Reverse(answer.Requests)
	}
	if s.forgetsTaken {
		s.sim.store.ForgetTaken()
	}
	if s.noForgotten {
		answer.Forgotten = nil
	}
	return answer, err
}

func (s *without) SettleRequests(ctx context.Context, settle *core.SettleRequests) (core.SettleAnswer, error) {
	changed := *settle
	if s.dropsRequests && len(settle.Ends) > 1 {
		changed.Ends = settle.Ends[1:]
	}
	if s.countsReturned {
		changed.Ends = slices.Clone(settle.Ends)
		for i := range changed.Ends {
			changed.Ends[i].State = core.RequestDelivered
		}
	}
	return s.Store.SettleRequests(ctx, &changed)
}

func (s *without) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	changed := *settle
	if s.noToken {
		changed.Lanes = settle.Lanes[:1]
		owner := s.sim.store.Lanes()[settle.Lanes[0]].Owner
		for _, relay := range s.sim.store.Relays() {
			if relay.Relay == owner {
				changed.Owner = relay.Owner
			}
		}
	}
	if s.dropsSettles && len(settle.Published) > 1 {
		changed.Published = settle.Published[1:]
	}
	if s.doubleCharges {
		changed.Retry = slices.Clone(settle.Retry)
		for i := range changed.Retry {
			changed.Retry[i].Attempts++
		}
	}
	if s.noFound {
		changed.Dead = slices.Clone(settle.Dead)
		for i := range changed.Dead {
			event, _ := s.sim.store.Event(changed.Dead[i].ID)
			changed.Dead[i].Found = event.Found()
		}
	}
	if s.noParking {
		for _, park := range settle.Park {
			changed.Dead = append(changed.Dead, core.Death{
				Found: park.Found, Reason: "unknown_event_type", Detail: park.Error,
			})
		}
		changed.Park = nil
	}
	return s.Store.Settle(ctx, &changed)
}

func (s *without) Barrier(ctx context.Context, incarnation string) error {
	if s.noBarrier {
		return nil
	}
	return s.Store.Barrier(ctx, incarnation)
}

func (s *without) Fence(ctx context.Context) (core.Fence, error) {
	fence, err := s.Store.Fence(ctx)
	if s.noStandby {
		fence.Standby = false
	}
	return fence, err
}

func (s *without) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	if s.noGone {
		read.Writers = nil
	}
	answer, err := s.Store.Read(ctx, read)
	if n := len(answer.Events); s.noCut && n > 2 && !answer.Stopped { // as if there were no more
		answer.Events = answer.Events[:n-1]
	}
	return answer, err
}

func (s *without) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	answer, err := s.Store.HeldKeys(ctx, held)
	if s.noHeld {
		answer.Keys = nil
	}
	return answer, err
}

func (s *without) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	answer, err := s.Store.Heartbeat(ctx, beat)
	if s.noPauses {
		answer.Pauses = nil
	}
	if s.noLimits {
		answer.Limits = nil
	}
	for i := range answer.Relays {
		answer.Relays[i].Expired = answer.Relays[i].Expired || s.endsAnybody && answer.Relays[i].ID != beat.Relay
	}
	return answer, err
}

func (s *without) EndExpired(ctx context.Context, end core.EndExpired) ([]outbox.ID, error) {
	if s.endsAnybody {
		for _, relay := range s.sim.store.Relays() {
			s.sim.store.ExpireRelay(relay.Relay)
		}
	}
	return s.Store.EndExpired(ctx, end)
}

func lacking(change func(*without)) Mutant {
	return wrap(func(sim *Simulation, store core.Store) core.Store {
		s := &without{Store: store, sim: sim}
		change(s)
		return s
	})
}

func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	// The first seed that finds a mutant ends its search. Most need fewer than 50 seeds. The rarest needs a death whose
	// answer is lost just before an operator redrives the event, which one seed in several hundred has.
	const within = 2000 // seeds
	for _, p := range []mutantCase{
		{"settle without token", lacking(func(s *without) { s.noToken = true }), []check.Counter{check.StaleSettlesApplied}},
		{
			"settle drops one of a group", lacking(func(s *without) { s.dropsSettles = true }),
			[]check.Counter{check.DuplicatesUnexplained, check.Stuck},
		},
		{"charged twice", lacking(func(s *without) { s.doubleCharges = true }), []check.Counter{check.ChargedWrongly}},
		{"no barrier", lacking(func(s *without) { s.noBarrier = true }), []check.Counter{check.Phantom}},
		{
			"standby not noticed", lacking(func(s *without) { s.noStandby = true }),
			[]check.Counter{check.Stuck, check.OrderViolations},
		},
		{
			"cut not noticed", lacking(func(s *without) { s.noCut = true }), []check.Counter{check.Stuck, check.OrderViolations},
		},
		{
			"writers that have ended not noticed", lacking(func(s *without) { s.noGone = true }),
			[]check.Counter{check.Stuck, check.OrderViolations},
		},
		{
			"held rows not read at take-over", lacking(func(s *without) { s.noHeld = true }),
			[]check.Counter{check.OrderViolations},
		},
		{"lease ignored", lacking(func(s *without) { s.endsAnybody = true }), []check.Counter{check.OwnersOverlapping}},
		{"pauses not told", lacking(func(s *without) { s.noPauses = true }), nil},
		{"limits not told", lacking(func(s *without) { s.noLimits = true }), nil},
		{
			"a death does not ask for the row that was read", lacking(func(s *without) { s.noFound = true }),
			[]check.Counter{check.IllegalTransitions, check.ChargedWrongly},
		},
		{"unknown types die", lacking(func(s *without) { s.noParking = true }), nil},
		{
			"a settle of requests drops one", lacking(func(s *without) { s.dropsRequests = true }),
			[]check.Counter{check.DuplicatesUnexplained},
		},
		{
			"requests taken in the wrong order", lacking(func(s *without) { s.turnsRequests = true }),
			[]check.Counter{check.CopiesOutOfOrder},
		},
		{
			"requests given back count as delivered", lacking(func(s *without) { s.countsReturned = true }),
			[]check.Counter{check.RequestsUnserved},
		},
		{
			"a cancel does not see who has a request in hands", lacking(func(s *without) { s.forgetsTaken = true }),
			[]check.Counter{check.SentAfterCancel},
		},
		{
			"writers listed before the sequence is read",
			Mutant{WritersFirst: true},
			[]check.Counter{check.Stuck, check.OrderViolations},
		},
		{
			"servers not told apart",
			Mutant{Incarnation: func(int, int) string { return "the database" }},
			[]check.Counter{check.OrderViolations},
		},
		{
			"recoveries not noticed",
			Mutant{Incarnation: func(starts, _ int) string { return fmt.Sprint(starts) }},
			[]check.Counter{check.Phantom},
		},
		{"acknowledged before it is kept", Mutant{AckFirst: true}, []check.Counter{check.Lost}},
		{"timeout taken for an acknowledgement", Mutant{TimeoutIsAck: true}, []check.Counter{check.Lost}},
		{"bytes changed", Mutant{Corrupt: true}, []check.Counter{check.Corrupted}},
		{"outage blamed on events", Mutant{ChargeOutages: true}, []check.Counter{check.ChargedWrongly}},
		{"no deadline", Mutant{NoDeadline: true}, []check.Counter{check.Stuck}},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(within) {
				result := Run(seed+1, steps, p.mutant, nil)
				if p.found(&result) {
					t.Logf("found by seed %d: %s", seed+1, result.Explain(steps))
					return
				}
			}
			t.Errorf("not found in %d seeds", within)
		})
	}
}

func (p *mutantCase) found(r *Result) bool {
	if p.seen == nil {
		return len(r.Problems) > 0
	}
	return r.Verdict != nil && slices.ContainsFunc(p.seen, func(c check.Counter) bool { return r.Verdict.Count(c) > 0 })
}

// TestForgottenCopiesAreFound: a store that does not tell a relay what it has taken keeps whoever cancels it waiting.
func TestForgottenCopiesAreFound(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, f := range forgetCopies(lacking(func(s *without) { s.noForgotten = true })) {
		found[f.Name] = !f.OK
	}
	if !found["forgotten_cancel_ms"] || !found["forgotten_kept"] {
		t.Errorf("found %v", found)
	}
}
