package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// trait is what is wrong with an event, for the broker or for its contract.
type trait struct {
	rejects  int  // so often for now
	terminal bool // for ever
	broken   bool // its contract
	hangs    bool // never an answer
	poison   bool // the relay dies
	kills    int  // so often it did, since a relay last paused its topic
	killedAt time.Duration
}

// outage is what is wrong with a topic now.
type outage struct {
	until      time.Duration
	hangs      bool
	retryAfter time.Duration
	quota      bool
}

// broker takes messages, if nothing goes wrong.
type broker struct {
	world   *World
	traits  map[outbox.ID]*trait
	topics  map[string]*outage
	broken  map[string]time.Duration // types that a bad deploy breaks, until then
	pipes   map[pipeKey]*pipe
	latency time.Duration            // the longest of an answer
	slow    map[string]time.Duration // how much later a topic answers
	// taken is told of every message that was accepted; nil: nobody.
	taken func(e *core.Event, topic string)
	// sent is told of every publish that a relay begins; nil: nobody.
	sent func(p *core.Publish)
}

// pipeKey is what the order of pipelined messages is kept for.
type pipeKey struct {
	life      *life
	aggregate core.Aggregate
	topic     string
}

// pipe is the messages of one key on their way. After a failure all behind it fail, until none is left.
type pipe struct {
	inFlight int
	failed   bool
	last     time.Duration // when the last one arrives
	answered time.Duration // when the last one is answered
	heldUp   time.Duration // until then all of it is in the client's buffer
}

// message is one publish on its way.
type message struct {
	life    *life
	publish *core.Publish
	event   core.Event // as it was handed over
	pipe    *pipe
	// fails is what becomes of it as a part of its batch; Acknowledged: nothing special.
	fails    core.Class
	answered bool
}

func newBroker(w *World) broker {
	return broker{
		world: w, traits: map[outbox.ID]*trait{}, topics: map[string]*outage{}, broken: map[string]time.Duration{},
		pipes: map[pipeKey]*pipe{}, latency: 20 * time.Millisecond,
	}
}

// takeAll takes what one relay publishes at once.
func (b *broker) takeAll(l *life, publishes []*core.Publish) {
	w := b.world
	partly := len(publishes) > 1 && w.hit(PartOfBatch)
	for i, p := range publishes {
		if b.sent != nil {
			b.sent(p)
		}
		if t := b.traits[p.Event.ID]; t != nil && t.poison && !w.healed {
			w.count(Poison)
			if t.kills++; l.pausedAt[p.Topic] > t.killedAt {
				t.kills = 1 // nobody dies of a topic that is paused, so the deaths before its pause are forgotten
			}
			t.killedAt = w.now
			l.kill()
			return
		}
		m := &message{life: l, publish: p, event: *p.Event, pipe: b.pipe(l, p)}
		if partly && i%2 == 1 {
			m.fails = core.Rejected
		}
		b.send(m)
	}
}

func (b *broker) pipe(l *life, p *core.Publish) *pipe {
	key := pipeKey{l, p.Event.Aggregate, p.Topic}
	if b.pipes[key] == nil {
		b.pipes[key] = &pipe{}
	}
	return b.pipes[key]
}

// send lets a message travel, and its deadline run.
func (b *broker) send(m *message) {
	w := b.world
	m.pipe.inFlight++
	if !w.plant.NoDeadline {
		w.queue.plan(w.now+w.plan.config.Deadline, func() bool {
			if m.answered {
				return false
			}
			outcome := core.Outcome{Class: core.Unknown, Detail: "deadline exceeded"}
			if w.plant.TimeoutIsAck {
				outcome = core.Outcome{}
			}
			b.answer(m, outcome)
			return true
		})
	}
	if m.pipe.failed {
		w.after(b.behind(m), func() { b.answer(m, core.Outcome{Class: core.NotSent, Detail: "the key is paused"}) })
		return
	}
	arrive := max(w.now+w.span(0, b.latency/4), m.pipe.last)
	m.pipe.last = arrive
	w.after(arrive-w.now, func() { b.arrive(m) })
}

// behind is a delay after which nothing of the same key is answered any more that came before.
func (b *broker) behind(m *message) time.Duration {
	w := b.world
	m.pipe.answered = max(m.pipe.answered, w.now+w.span(0, b.latency))
	return m.pipe.answered - w.now
}

// arrive decides what becomes of a message.
func (b *broker) arrive(m *message) {
	w, l, pipe := b.world, m.life, m.pipe
	if l.paused > w.now && pipe.heldUp <= w.now && w.chance(0.5) {
		pipe.heldUp = l.paused + w.span(0, b.latency)
	}
	switch {
	case l.gone && (pipe.failed || w.chance(0.5)):
		pipe.failed = true
		return
	case pipe.failed && m.answered: // it waited in the client's buffer until nobody did for it, and is not sent behind a failure
		return
	case pipe.failed: // also in the client's buffer: those before it were told so
		w.after(b.behind(m), func() { b.answer(m, core.Outcome{Class: core.NotSent, Detail: "the key is paused"}) })
		return
	case pipe.heldUp > w.now:
		w.after(pipe.heldUp-w.now, func() { b.arrive(m) })
		return
	}
	if b.down(m) || b.troubled(m) || b.unlucky(m) {
		return
	}
	if w.plant.AckFirst && w.chance(0.02) {
		w.after(b.behind(m), func() { b.answer(m, core.Outcome{}) })
		return
	}
	b.accept(m)
	w.after(b.slow[m.publish.Topic]+b.behind(m), func() { b.answer(m, core.Outcome{}) })
}

// down answers for a topic that cannot take messages.
func (b *broker) down(m *message) bool {
	w := b.world
	o := b.topics[m.publish.Topic]
	if o == nil || w.now >= o.until {
		return false
	}
	if o.hangs {
		b.fail(m)
		return true
	}
	outcome := core.Outcome{Class: core.RouteFault, Detail: "the broker is down", RetryAfter: o.retryAfter}
	if w.plant.BlameRoute {
		outcome.Class = core.Rejected
	}
	b.refuse(m, outcome)
	return true
}

// troubled answers for an event with which something is wrong.
func (b *broker) troubled(m *message) bool {
	w, e := b.world, &m.event
	if w.now < b.broken[e.Type] {
		b.refuse(m, core.Outcome{Class: core.Terminal, Reason: "invalid_payload", Detail: "the contract is broken", Contract: true})
		return true
	}
	t := b.traits[e.ID]
	switch {
	case t == nil:
		return false
	case t.broken:
		b.refuse(m, core.Outcome{Class: core.Terminal, Reason: "invalid_payload", Detail: "the contract is broken", Contract: true})
	case t.terminal:
		b.refuse(m, core.Outcome{Class: core.Terminal, Reason: "too_large", Detail: "too large"})
	case t.hangs:
		b.fail(m)
	case t.rejects > 0:
		t.rejects--
		b.refuse(m, core.Outcome{Class: core.Rejected, Detail: "not now"})
	default:
		return false
	}
	return true
}

// unlucky lets a healthy message fail.
func (b *broker) unlucky(m *message) bool {
	w := b.world
	switch {
	case m.fails != core.Acknowledged:
		b.refuse(m, core.Outcome{Class: m.fails, Detail: "a part of the batch failed"})
	case w.hit(BrokerRejected):
		b.refuse(m, core.Outcome{Class: core.Rejected, Detail: "not now"})
	case w.hit(AckLost):
		b.accept(m)
		if w.chance(0.5) {
			b.refuse(m, core.Outcome{Class: core.Unknown, Detail: "connection reset"})
			return true
		}
		// A broker that says no and has it all the same.
		w.record.fault(check.Fault{
			Kind: check.AckLost, ID: m.event.ID, From: at(w.now), To: at(w.now) + 1, First: w.record.next() - 1, Last: w.record.next(),
		})
		b.refuse(m, core.Outcome{Class: []core.Class{core.Rejected, core.RouteFault}[w.rand.IntN(2)], Detail: "no"})
	case w.hit(OverDeadline):
		b.accept(m)
		m.pipe.failed = true
	case w.hit(LateAccept):
		m.pipe.failed = true
		w.after(w.plan.config.Deadline+w.span(0, 2*w.plan.config.Lease), func() { b.accept(m) })
	case w.hit(Dropped):
		b.fail(m)
	default:
		return false
	}
	return true
}

// fail leaves a message without an answer.
func (b *broker) fail(m *message) { m.pipe.failed = true }

func (b *broker) refuse(m *message, outcome core.Outcome) {
	m.pipe.failed = true
	b.world.after(b.behind(m), func() { b.answer(m, outcome) })
}

// accept takes the message: from here on consumers have it.
func (b *broker) accept(m *message) {
	w, e := b.world, &m.event
	if w.plant.Corrupt && w.chance(0.05) {
		changed := *e
		changed.Payload = append([]byte(" "), e.Payload...)
		e = &changed
	}
	w.record.delivery(e, m.publish.Topic)
	w.logf("broker has %s of %s as %d", short(e.ID), m.life.name, w.record.arrivals)
	if b.taken != nil {
		b.taken(e, m.publish.Topic)
	}
}

// answer tells the relay, once.
func (b *broker) answer(m *message, outcome core.Outcome) {
	if m.answered {
		return
	}
	m.answered = true
	if m.pipe.inFlight--; m.pipe.inFlight == 0 {
		m.pipe.failed = false
	}
	m.life.input(func() { m.life.core.Published(b.world.now, m.publish, outcome) })
}
