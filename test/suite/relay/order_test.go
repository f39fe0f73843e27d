package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// rejecting refuses the events of an aggregate with this number until it is told to stop.
func rejecting(n int, until func(try int) bool) func(context.Context, *publish.Message, int) error {
	return func(_ context.Context, message *publish.Message, try int) error {
		if d := (&delivery{Message: *message}); message.AggregateID == "held" && d.n() == n && !until(try) {
			return &publish.RejectedError{Err: errors.New("not now")}
		}
		return nil
	}
}

func never(int) bool { return false }

// S-7, S4: what comes behind a failing event of its aggregate and topic waits for it; nobody else does.
func TestFollowersWaitForARetry(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = rejecting(2, func(try int) bool { return try > 3 })
		for n := 1; n <= 5; n++ {
			p.emit(t, placed.New("held", note{N: n}), billed.New("held", note{N: n}), placed.New("free", note{N: n}))
		}
		p.start(t, "a")
		p.awaitPublished(t, 15)
		var onOrders []int
		for _, d := range p.broker.deliveries(func(d *delivery) bool {
			return d.AggregateID == "held" && d.Topic == "orders"
		}) {
			onOrders = append(onOrders, d.n())
		}
		if want := []int{1, 2, 2, 2, 2, 3, 4, 5}; !slices.Equal(onOrders, want) {
			t.Errorf("sent %v, want %v", onOrders, want)
		}
		if got := p.broker.took("free"); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
			t.Errorf("of the other aggregate: %v", got)
		}
		if wrong := p.broker.outOfOrder(); len(wrong) > 0 || p.broker.overlaps > 0 {
			t.Errorf("out of order: %v, %d overlaps", wrong, p.broker.overlaps)
		}
	})
}

// RL-10, RL-15: within one aggregate, what is behind an event that dies goes on, in order and without anybody's doing,
// unless its contract says block: then it waits for a person. Both were held up only while the event was tried.
func TestABadEventWithinItsAggregate(t *testing.T) {
	t.Parallel()
	failures := map[string]error{
		"out of attempts": &publish.RejectedError{Err: errors.New("not now")},
		"for good":        &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("never")},
	}
	for setting, contract := range map[string]*outbox.ContractFor[note]{"skip": annotated, "block": placed} {
		for how, err := range failures {
			t.Run(how+" under "+setting, func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, p *env) {
					const limit = 3
					tried := make(chan struct{})
					p.broker.answer = func(ctx context.Context, message *publish.Message, _ int) error {
						if d := (&delivery{Message: *message}); message.AggregateID != "held" || d.n() != 2 || message.Topic != "orders" {
							return nil
						}
						select {
						case <-tried:
							return err
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					var bad outbox.ID
					for n := 1; n <= 4; n++ {
						ids := p.emit(t, contract.New("held", note{N: n}), billed.New("held", note{N: n}),
							contract.New("free", note{N: n}))
						if n == 2 {
							bad = ids[0]
						}
					}
					a := p.start(t, "a", with(longLease), with(func(s *relay.Settings) {
						s.MaxAttempts, s.Deadline = limit, 10*time.Minute // no publish of this test is late
					}))
					eventually.True(t, "all that need not wait", func() bool { return p.inState(t, published) == 9 })
					close(tried)
					state, attempts := dead, 1
					if setting == "block" {
						state = deadBlocking
					}
					if how == "out of attempts" {
						attempts = limit
					}
					if r := p.awaitState(t, bad, state); r.attempts != attempts || r.publishedAt != nil {
						t.Errorf("dead as %+v", r)
					}
					if err := a.stop(t); err != nil {
						t.Error(err)
					}
					// The next relay knows no more than the table says.
					p.emit(t, contract.New("held", note{N: 5}), contract.New("free", note{N: 5}))
					p.start(t, "b")
					onOrders := func() (took []int) {
						for _, d := range p.broker.deliveries(func(d *delivery) bool {
							return d.AggregateID == "held" && d.Topic == "orders" && d.n() != 2
						}) {
							took = append(took, d.n())
						}
						return took
					}
					want := []int{1, 3, 4, 5}
					if setting == "block" {
						eventually.True(t, "three that wait", func() bool {
							return p.inState(t, waiting) == 3 && p.inState(t, ready) == 0
						})
						if took := onOrders(); !slices.Equal(took, want[:1]) {
							t.Errorf("past the block went %v", took)
						}
						action := operator.Action{ID: outbox.NewID(), Actor: "ann", Reason: "the rest must go"}
						if results, err := operator.New(p.Pool, p.Schema).Skip(t.Context(), action, bad); err != nil ||
							results[0].Outcome != operator.Done {
							t.Fatalf("%+v, %v", results, err)
						}
					}
					eventually.True(t, "all others", func() bool { return p.inState(t, published) == 13 })
					if took := onOrders(); !slices.Equal(took, want) {
						t.Errorf("behind it went %v, want %v", took, want)
					}
					if r := p.row(t, bad); r.state != dead || r.attempts != attempts {
						t.Errorf("in the end it is %+v", r)
					}
				})
			})
		}
	}
}

// S-8: the contract says whether followers of a dead event wait or go.
func TestADeadEventBlocksOrNotAsItsContractSays(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = rejecting(1, never)
		skipped := p.emit(t, annotated.New("held", note{N: 1}))[0]
		p.emit(t, annotated.New("held", note{N: 2}))
		p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = 2 }))
		if r := p.awaitState(t, skipped, dead); r.publishedAt != nil {
			t.Errorf("dead, and %+v", r)
		}
		eventually.True(t, "its follower", func() bool { return slices.Equal(p.broker.took("held"), []int{2}) })
		blocking := p.emit(t, placed.New("held", note{N: 1}))[0]
		p.emit(t, annotated.New("held", note{N: 3}), billed.New("held", note{N: 4}))
		p.awaitState(t, blocking, deadBlocking)
		// The other topic's event was emitted after the one that must wait: once it is there, the relay has met both.
		eventually.True(t, "the other topic's", func() bool { return slices.Equal(p.broker.took("held"), []int{2, 4}) })
		eventually.True(t, "a follower that waits", func() bool { return p.inState(t, waiting) == 1 })
		p.letter(t, skipped)
		p.letter(t, blocking)
	})
}

// DL-4, S7, L3: what an operator decides is done at once, and the aggregate goes on in order.
func TestOperatorsEndABlockAndTheAggregateGoesOnInOrder(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]struct {
		act  func(*operator.Operator, context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error)
		ends int
		took []int
	}{
		"redrive": {(*operator.Operator).Redrive, published, []int{0, 1, 2, 3}},
		"skip":    {(*operator.Operator).Skip, dead, []int{0, 2, 3}},
		"discard": {(*operator.Operator).Discard, discarded, []int{0, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, p *env) {
				const attempts = 2
				p.broker.answer = rejecting(1, func(try int) bool { return try > attempts })
				p.emit(t, placed.New("held", note{}))
				id := p.emit(t, placed.New("held", note{N: 1}))[0]
				for n := 2; n <= 3; n++ {
					p.emit(t, placed.New("held", note{N: n}))
				}
				p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = attempts }))
				p.awaitState(t, id, deadBlocking)
				eventually.True(t, "two that wait", func() bool { return p.inState(t, waiting) == 2 })
				action := operator.Action{ID: outbox.NewID(), Actor: "ann", Reason: "the topic is back"}
				results, err := verdict.act(operator.New(p.Pool, p.Schema), t.Context(), action, id)
				if err != nil || results[0].Outcome != operator.Done {
					t.Fatalf("%+v, %v", results, err)
				}
				eventually.True(t, fmt.Sprint("the followers ", verdict.took), func() bool {
					return slices.Equal(p.broker.took("held"), verdict.took)
				})
				p.awaitState(t, id, verdict.ends)
				p.emit(t, placed.New("held", note{N: 4}))
				eventually.True(t, "the next event", func() bool {
					return slices.Equal(p.broker.took("held"), append(slices.Clone(verdict.took), 4))
				})
				eventually.True(t, "nothing held", func() bool {
					return p.inState(t, waiting)+p.inState(t, ready)+p.inState(t, retrying) == 0
				})
				if p.broker.overlaps > 0 {
					t.Errorf("%d overlaps", p.broker.overlaps)
				}
			})
		})
	}
}
