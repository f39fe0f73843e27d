package relay

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// K11: a publisher that panics whatever it is handed is out of order like a broker that is down: no event pays for it.
func TestAPublisherThatPanicsChargesNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 5
		var fixed atomic.Bool
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			if !fixed.Load() {
				panic("assignment to entry in nil map")
			}
			return nil
		}
		for i := range events {
			p.emit(t, placed.New(fmt.Sprint(i), note{}))
		}
		r := p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = 2 }))
		eventually.True(t, "a few tries", func() bool { return p.broker.count() >= events+3 })
		eventually.True(t, "a topic that is paused", func() bool { return r.FailingTopics()["orders"] != "" })
		if died, charged := p.inState(t, deadBlocking), p.chargedEvents(t); died+charged > 0 {
			t.Fatalf("%d events are dead, %d were charged with an attempt", died, charged)
		}
		fixed.Store(true)
		p.awaitPublished(t, events)
		if charged := p.chargedEvents(t); charged > 0 {
			t.Errorf("%d events were charged with an attempt", charged)
		}
	})
}

// K11: one event over which the publisher trips, while others pass, dies alone.
func TestAnEventThatPanicsAmongOthersDiesAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			if message.AggregateID == "poison" {
				panic("index out of range")
			}
			return nil
		}
		poison := p.emit(t, placed.New("poison", note{}))[0]
		p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = 3 }))
		good := 0
		eventually.True(t, "the end of the poison", func() bool {
			p.emit(t, placed.New(fmt.Sprint("good ", good), note{}))
			good++
			return p.row(t, poison).state == deadBlocking
		})
		eventually.True(t, "all others", func() bool { return p.inState(t, published) == good })
		if charged, tries := p.chargedEvents(t), p.row(t, poison).attempts; charged != 1 || tries != 3 {
			t.Errorf("%d events were charged; the poison with %d attempts", charged, tries)
		}
		if reason, _, detail := p.letter(t, poison); reason != "max_attempts" {
			t.Errorf("dead because of %s: %s", reason, detail)
		}
	})
}

// tripping is a payload whose contract's own rule panics.
type tripping struct {
	N int `json:"n"`
}

// Validate trips.
func (n tripping) Validate() error {
	var rates map[int]*note
	_ = rates[n.N].N
	return nil
}

// K11, V6: a contract's check that panics is a contract that is broken, so a bad deployment's backlog is parked, and
// other types of the topic go on.
func TestACheckThatPanicsKillsNoBacklog(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events, others = 40, 20
		for i := range events {
			p.emit(t, placed.New(fmt.Sprint("placed ", i), note{N: 1}))
		}
		for i := range others {
			p.emit(t, annotated.New(fmt.Sprint("noted ", i), note{N: 1}))
		}
		strict := outbox.Define[tripping](placed.Contract())
		a := p.start(t, "bad deploy", with(func(s *relay.Settings) { s.MaxAttempts = 2 }),
			func(config *relay.Config) { config.Registry = registry(t, strict, annotated) })
		eventually.True(t, "all looked at", func() bool { return p.inState(t, ready)+p.inState(t, retrying) == 0 })
		died, aside, out := p.inState(t, deadBlocking), p.inState(t, parked), p.inState(t, published)
		if died != 10 || aside != events-died || out != others {
			t.Errorf("%d of %d events died, %d are parked; %d of %d others are out", died, events, aside, out, others)
		}
		if err := a.stop(t); err != nil {
			t.Error(err)
		}
		p.start(t, "good deploy")
		eventually.True(t, "the parked ones", func() bool { return p.inState(t, published) == others+events-died })
	})
}
