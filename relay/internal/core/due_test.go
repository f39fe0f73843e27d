package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// many is several times what one look for due rows brings of a lane.
const many = 200

func (p *place) operate(t *testing.T, verb check.Verb, events ...outbox.ID) {
	t.Helper()
	results, err := p.store.Operate(verb, memstore.Order{Action: p.id(), Actor: "ada", Reason: "repaired"}, events...)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Outcome != memstore.Done {
			t.Fatalf("%s of %s: %s, it was in state %d", verb, result.Event, result.Outcome, result.Was)
		}
	}
}

func (p *place) in(t *testing.T, state core.State, events []outbox.ID) (n int) {
	t.Helper()
	for _, id := range events {
		if p.state(t, id) == state {
			n++
		}
	}
	return n
}

// What is redriven is published soon, however many rows of a type that nobody knows became due after it.
func TestRedriveBeforeRowsOfAnUnknownType(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	refused := true
	answer := func(*core.Publish) (core.Outcome, bool) {
		if refused {
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		}
		return core.Outcome{}, true
	}
	r := p.relay(t, registry{"a": {Topic: "topic", Block: true}}, func(c *core.Config) {
		c.SweepPeriod, c.UnknownTypeMaxAge = 10*time.Second, 10*time.Second
	})
	r.answer = answer
	var good, unknown []outbox.ID
	for i := range many {
		good = append(good, p.emit(t, "0", fmt.Sprint("good", i), "a"))
	}
	for i := range many {
		unknown = append(unknown, p.emit(t, "0", fmt.Sprint("unknown", i), "b"))
	}
	r.pass(3 * time.Minute)
	if n := p.in(t, core.DeadBlocking, good) + p.in(t, core.Dead, unknown); n != 2*many {
		t.Fatalf("%d of %d events are dead: this test does not test", n, 2*many)
	}
	refused = false
	p.operate(t, check.Redrive, append(good[:many:many], unknown...)...)
	r.pass(time.Minute)
	if n := p.in(t, core.Published, good); n != many {
		t.Errorf("a minute after the redrive %d of %d good events are published", n, many)
	}
}

// The same behind one line whose head hangs: all that is due behind it stays due.
func TestRedriveBeforeALineThatHangs(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "topic"}}, func(c *core.Config) {
		c.Deadline, c.Lease = 2*time.Minute, 10*time.Minute
	})
	refused := true
	r.answer = func(publish *core.Publish) (core.Outcome, bool) {
		switch {
		case refused:
			return core.Outcome{Class: core.Terminal, Reason: "rejected"}, true
		case publish.Event.Aggregate.ID == "slow":
			return core.Outcome{}, false
		default:
			return core.Outcome{}, true
		}
	}
	r.pass(time.Second)
	var good, slow []outbox.ID
	for i := range many {
		good = append(good, p.emit(t, "0", fmt.Sprint("good", i), "a"))
	}
	for range many {
		slow = append(slow, p.emit(t, "0", "slow", "a"))
	}
	r.pass(time.Minute)
	if n := p.in(t, core.Dead, append(good[:many:many], slow...)); n != 2*many {
		t.Fatalf("%d of %d events are dead: this test does not test", n, 2*many)
	}
	refused = false
	p.operate(t, check.Redrive, good...)
	p.operate(t, check.Redrive, slow...)
	r.pass(time.Minute)
	if n := p.in(t, core.Published, good); n != many {
		t.Errorf("a minute after the redrive %d of %d good events are published", n, many)
	}
}
