package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// overtaken lets somebody act right before a settle of one kind reaches the database, once.
type overtaken struct {
	*memstore.Store
	when func(*core.Settle) bool
	act  func()
}

func (o *overtaken) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	if o.act != nil && o.when(settle) {
		o.act()
		o.act = nil
	}
	return o.Store.Settle(ctx, settle)
}

// What a settle comes too late for is not told as done: an operator's skip makes the first waiting event a retry, right
// before its death or its retry is written down. The relay reads the event again.
func TestASettleThatComesTooLateIsNotTakenForApplied(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		outcome core.Outcome
		when    func(*core.Settle) bool
		to      []core.State
	}{
		"death": {
			core.Outcome{Class: core.Terminal, Reason: "rejected"},
			func(s *core.Settle) bool { return len(s.Dead) > 0 },
			[]core.State{core.Dead, core.DeadBlocking},
		},
		"retry": {
			core.Outcome{Class: core.Rejected},
			func(s *core.Settle) bool { return len(s.Retry) > 0 },
			[]core.State{core.Retrying},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(1)
			told := map[core.Result]int{}
			var second outbox.ID
			routes := registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}, "c": {Topic: "other", Block: true}}
			r := p.relay(t, routes, func(c *core.Config) {
				observe := c.Observe
				c.Observe = func(s core.Step) {
					observe(s)
					if s.Do == core.DidSettle && s.Event == second && slices.Contains(test.to, s.State) {
						told[s.Result]++
					}
				}
			})
			// Of another topic, so that the others go on, and of the same aggregate, so that a skip frees who waits in it.
			head := p.emit(t, "0", "one", "c")
			first := p.emit(t, "0", "one", "a")
			second = p.emit(t, "0", "one", "b")
			refused := map[outbox.ID]int{}
			r.answer = func(publish *core.Publish) (core.Outcome, bool) {
				id := publish.Event.ID
				refused[id]++
				switch {
				case id == head:
					return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
				case refused[id] > 1:
					return core.Outcome{}, true
				case id == first:
					return core.Outcome{Class: core.Rejected}, true
				default:
					return test.outcome, true
				}
			}
			// Until the second is sent, its settles are about waiting.
			late := &overtaken{Store: p.store, when: func(s *core.Settle) bool { return refused[second] > 0 && test.when(s) }}
			late.act = func() {
				if p.state(t, second) != core.Waiting {
					t.Fatalf("state %d: this test does not test", p.state(t, second))
				}
				p.operate(t, check.Skip, head)
			}
			r.via = late
			r.pass(time.Minute)
			event, _ := p.store.Event(second)
			if told[core.Applied] != 0 || told[core.Unchanged] != 1 || event.Attempts != 0 || event.State != core.Published {
				t.Errorf("told %v, and the event is in state %d after %d attempts", told, event.State, event.Attempts)
			}
			if dead := r.core.Counts().Dead; dead != 1 { // the head
				t.Errorf("%d deaths are counted of one", dead)
			}
		})
	}
}
