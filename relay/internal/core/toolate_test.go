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

// The death of a suspect comes too late, because a skip made it due: it must not be sent for all that.
func TestASuspectWhoseDeathComesTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	routes := registry{"a": {Topic: "topic"}, "b": {Topic: "topic"}, "c": {Topic: "other", Block: true}}
	head := p.emit(t, "0", "one", "c")
	first := p.emit(t, "0", "one", "a")
	killer := p.emit(t, "0", "one", "b")
	r := p.relay(t, routes, nil)
	n := map[outbox.ID]int{}
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		id := publish.Event.ID
		n[id]++
		switch {
		case id == head:
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		case id == first && n[id] == 1:
			return core.Outcome{Class: core.Rejected}, true
		case id == first:
			return core.Outcome{}, true
		default:
			return core.Outcome{}, false
		}
	}
	r.pass(20 * time.Second)
	p.now += time.Minute
	for range 4 {
		p.die(t, killer, 0)
	}
	r = p.relay(t, routes, nil)
	late := &overtaken{Store: p.store, when: func(s *core.Settle) bool { return len(s.Dead) > 0 }}
	late.act = func() { p.operate(t, check.Skip, head) }
	r.via = late
	r.answer = func(*core.Publish) (core.Outcome, bool) { return core.Outcome{}, false }
	r.pass(time.Minute)
	if state := p.state(t, killer); slices.Contains(r.sent, killer) || state != core.Dead || late.act != nil {
		t.Errorf("the suspect was sent: %t, and is in state %d", slices.Contains(r.sent, killer), state)
	}
}

// stubborn never finds the row of one event as it was read, and perhaps not at all any more.
type stubborn struct {
	*memstore.Store
	event outbox.ID
	gone  bool
}

func (o *stubborn) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	rest := *settle
	found := false
	rest.Dead, rest.Retry = nil, nil
	for _, d := range settle.Dead {
		if d.ID != o.event {
			rest.Dead = append(rest.Dead, d)
		} else {
			found = true
		}
	}
	for _, d := range settle.Retry {
		if d.ID != o.event {
			rest.Retry = append(rest.Retry, d)
		} else {
			found = true
		}
	}
	answer, err := o.Store.Settle(ctx, &rest)
	if found {
		answer.Unchanged = append(answer.Unchanged, o.event)
	}
	return answer, err
}

func (o *stubborn) HeldRows(ctx context.Context, held core.HeldRows) (core.RowsAnswer, error) {
	answer, err := o.Store.HeldRows(ctx, held)
	if o.gone {
		answer.Events = slices.DeleteFunc(answer.Events, func(e core.Event) bool { return e.ID == o.event })
	}
	return answer, err
}

// A row that the database never finds as it was read is tried again now and then, and holds up its line. One that is
// gone does not.
func TestARowThatIsNeverAsItWasRead(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		for _, outcome := range []core.Outcome{{Class: core.Rejected}, {Class: core.Terminal, Reason: "rejected"}} {
			p := newPlace(1)
			first, odd, last := p.emit(t, "0", "one", "a"), p.emit(t, "0", "one", "a"), p.emit(t, "0", "one", "a")
			r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
			store := &stubborn{Store: p.store, event: odd}
			sent := map[outbox.ID]int{}
			r.answer = func(publish *core.Publish) (core.Outcome, bool) {
				id := publish.Event.ID
				sent[id]++
				switch {
				case id == odd:
					store.gone = gone
					return outcome, true
				case id == first && sent[id] == 1: // so that the others wait
					return core.Outcome{Class: core.Rejected}, true
				default:
					return core.Outcome{}, true
				}
			}
			r.via = store
			r.pass(time.Minute)
			if sent[odd] == 0 || sent[odd] > 61 || (sent[last] > 0) != gone {
				t.Errorf("gone %t, class %d: sent %d times, and the next one %d times", gone, outcome.Class, sent[odd], sent[last])
			}
		}
	}
}

// Only the rows that the answer names are unchanged, not what was settled beside them.
func TestOnlyWhatTheAnswerNamesIsUnchanged(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	told := map[outbox.ID]core.Result{}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.Observe = func(s core.Step) {
			if s.Do == core.DidSettle {
				told[s.Event] = s.Result
			}
		}
	})
	late, dead, sent := p.emit(t, "0", "one", "a"), p.emit(t, "0", "two", "a"), p.emit(t, "0", "three", "a")
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		if publish.Event.ID == sent {
			return core.Outcome{}, true
		}
		return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
	}
	r.via = &stubborn{Store: p.store, event: late, gone: true}
	r.pass(time.Minute)
	if told[late] != core.Unchanged || told[dead] != core.Applied || told[sent] != core.Applied ||
		r.calls[core.OpSettle] != 1 {
		t.Errorf("told %v in %d settles", told, r.calls[core.OpSettle])
	}
	if counts := r.core.Counts(); counts.Dead != 1 || counts.Published != 1 {
		t.Errorf("counted %+v", counts)
	}
}

// A death that was applied and whose answer was lost is told as applied when it is settled again.
func TestALostAnswerIsNotTooLate(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	told := map[core.Result]int{}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.Observe = func(s core.Step) {
			if s.Do == core.DidSettle {
				told[s.Result]++
			}
		}
	})
	p.emit(t, "0", "one", "a")
	r.answer = func(*core.Publish) (core.Outcome, bool) {
		return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
	}
	r.via = unanswered{p.store, func() {}}
	r.pass(time.Minute)
	if told[core.Uncertain] != 1 || told[core.Applied] != 1 || len(told) != 2 || r.core.Counts().Dead != 1 {
		t.Errorf("told %v, counted %d deaths", told, r.core.Counts().Dead)
	}
}
