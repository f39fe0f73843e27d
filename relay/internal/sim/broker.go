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
	terminal bool // forever
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
	rejects    bool // as if each message were what is wrong
	retryAfter time.Duration
	quota      bool
}

// broker takes messages, if nothing goes wrong.
type broker struct {
	sim     *Simulation
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
	relay     *relayProcess
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
	relay   *relayProcess
	publish *core.Publish
	event   core.Event // as it was handed over
	pipe    *pipe
	// fails is what becomes of it as a part of its batch; Acknowledged: nothing special.
	fails    core.Class
	answered bool
}

func newBroker(sim *Simulation) broker {
	return broker{
		sim: sim, traits: map[outbox.ID]*trait{}, topics: map[string]*outage{}, broken: map[string]time.Duration{},
		pipes: map[pipeKey]*pipe{}, latency: 20 * time.Millisecond,
	}
}

// takeAll takes what one relay publishes at once.
func (b *broker) takeAll(relay *relayProcess, publishes []*core.Publish) {
	sim := b.sim
	partly := len(publishes) > 1 && sim.hit(PartOfBatch)
	for i, p := range publishes {
		if b.sent != nil {
			b.sent(p)
		}
		if t := b.traits[p.Event.ID]; t != nil && t.poison && !sim.healed {
			sim.count(Poison)
			if t.kills++; relay.pausedAt[p.Topic] > t.killedAt {
				t.kills = 1 // nobody dies of a topic that is paused, so the deaths before its pause are forgotten
			}
			t.killedAt = sim.now
			relay.kill()
			return
		}
		m := &message{relay: relay, publish: p, event: *p.Event, pipe: b.pipe(relay, p)}
		if partly && i%2 == 1 {
			m.fails = core.Rejected
		}
		b.send(m)
	}
}

func (b *broker) pipe(relay *relayProcess, p *core.Publish) *pipe {
	key := pipeKey{relay, p.Event.Aggregate, p.Topic}
	if b.pipes[key] == nil {
		b.pipes[key] = &pipe{}
	}
	return b.pipes[key]
}

// send lets a message travel, and its deadline run.
func (b *broker) send(m *message) {
	sim := b.sim
	m.pipe.inFlight++
	if !sim.mutant.NoDeadline {
		sim.queue.plan(sim.now+sim.plan.config.Deadline, func() bool {
			if m.answered {
				return false
			}
			outcome := core.Outcome{Class: core.Unknown, Detail: "deadline exceeded"}
			if sim.mutant.TimeoutIsAck {
				outcome = core.Outcome{}
			}
			b.answer(m, outcome)
			return true
		})
	}
	if m.pipe.failed {
		sim.after(b.answerDelay(m), func() { b.answer(m, core.Outcome{Class: core.NotSent, Detail: "the key is paused"}) })
		return
	}
	arrival := max(sim.now+sim.span(0, b.latency/4), m.pipe.last)
	m.pipe.last = arrival
	sim.after(arrival-sim.now, func() { b.deliver(m) })
}

// answerDelay is a delay after which nothing of the same key is answered any more that came before.
func (b *broker) answerDelay(m *message) time.Duration {
	sim := b.sim
	m.pipe.answered = max(m.pipe.answered, sim.now+sim.span(0, b.latency))
	return m.pipe.answered - sim.now
}

// deliver decides what becomes of a message.
func (b *broker) deliver(m *message) {
	sim, relay, pipe := b.sim, m.relay, m.pipe
	if relay.paused > sim.now && pipe.heldUp <= sim.now && sim.chance(0.5) {
		pipe.heldUp = relay.paused + sim.span(0, b.latency)
	}
	switch {
	case relay.gone && (pipe.failed || sim.chance(0.5)):
		pipe.failed = true
		return
	// it waited in the client's buffer until nobody did for it, and is not sent behind a failure
	case pipe.failed && m.answered:
		return
	case pipe.failed: // also in the client's buffer: those before it were told so
		sim.after(b.answerDelay(m), func() { b.answer(m, core.Outcome{Class: core.NotSent, Detail: "the key is paused"}) })
		return
	case pipe.heldUp > sim.now:
		sim.after(pipe.heldUp-sim.now, func() { b.deliver(m) })
		return
	}
	if b.down(m) || b.troubled(m) || b.unlucky(m) {
		return
	}
	if sim.mutant.AckFirst && sim.chance(0.02) {
		sim.after(b.answerDelay(m), func() { b.answer(m, core.Outcome{}) })
		return
	}
	b.accept(m)
	sim.after(b.slow[m.publish.Topic]+b.answerDelay(m), func() { b.answer(m, core.Outcome{}) })
}

// down answers for a topic that cannot take messages.
func (b *broker) down(m *message) bool {
	sim := b.sim
	o := b.topics[m.publish.Topic]
	if o == nil || sim.now >= o.until {
		return false
	}
	if o.hangs {
		b.fail(m)
		return true
	}
	outcome := core.Outcome{Class: core.RouteFault, Detail: "the broker is down", RetryAfter: o.retryAfter}
	if o.rejects || sim.mutant.ChargeOutages {
		outcome.Class = core.Rejected
	}
	b.failWith(m, outcome)
	return true
}

// troubled answers for an event with which something is wrong.
func (b *broker) troubled(m *message) bool {
	sim, e := b.sim, &m.event
	if sim.now < b.broken[e.Type] {
		b.failWith(m, core.Outcome{
			Class: core.Terminal, Reason: "invalid_payload", Detail: "the contract is broken", Contract: true,
		})
		return true
	}
	t := b.traits[e.ID]
	switch {
	case t == nil:
		return false
	case t.broken:
		b.failWith(m, core.Outcome{
			Class: core.Terminal, Reason: "invalid_payload", Detail: "the contract is broken", Contract: true,
		})
	case t.terminal:
		b.failWith(m, core.Outcome{Class: core.Terminal, Reason: "too_large", Detail: "too large"})
	case t.hangs:
		b.fail(m)
	case t.rejects > 0:
		t.rejects--
		b.failWith(m, core.Outcome{Class: core.Rejected, Detail: "not now"})
	default:
		return false
	}
	return true
}

// unlucky lets a healthy message fail.
func (b *broker) unlucky(m *message) bool {
	sim := b.sim
	switch {
	case m.fails != core.Acknowledged:
		b.failWith(m, core.Outcome{Class: m.fails, Detail: "a part of the batch failed"})
	case sim.hit(BrokerRejected):
		b.failWith(m, core.Outcome{Class: core.Rejected, Detail: "not now"})
	case sim.hit(AckLost):
		b.accept(m)
		if sim.chance(0.5) {
			b.failWith(m, core.Outcome{Class: core.Unknown, Detail: "connection reset"})
			return true
		}
		// A broker that says no and has it all the same.
		sim.record.fault(check.Fault{
			Kind: check.AckLost, ID: m.event.ID, From: at(sim.now), To: at(sim.now) + 1, First: sim.record.next() - 1,
			Last: sim.record.next(),
		})
		b.failWith(m, core.Outcome{Class: []core.Class{core.Rejected, core.RouteFault}[sim.rand.IntN(2)], Detail: "no"})
	case sim.hit(OverDeadline):
		b.accept(m)
		m.pipe.failed = true
	case sim.hit(LateAccept):
		m.pipe.failed = true
		sim.after(sim.plan.config.Deadline+sim.span(0, 2*sim.plan.config.Lease), func() { b.accept(m) })
	case sim.hit(Dropped):
		b.fail(m)
	default:
		return false
	}
	return true
}

// fail leaves a message without an answer.
func (b *broker) fail(m *message) { m.pipe.failed = true }

func (b *broker) failWith(m *message, outcome core.Outcome) {
	m.pipe.failed = true
	b.sim.after(b.answerDelay(m), func() { b.answer(m, outcome) })
}

// accept takes the message: from here on consumers have it.
func (b *broker) accept(m *message) {
	sim, e := b.sim, &m.event
	if sim.mutant.Corrupt && sim.chance(0.05) {
		changed := *e
		changed.Payload = append([]byte(" "), e.Payload...)
		e = &changed
	}
	sim.record.delivery(e, m.publish.Topic, m.publish.Request)
	sim.logf("broker has %s of %s as %d", short(e.ID), m.relay.name, sim.record.arrivals)
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
	m.relay.input(func() { m.relay.core.Published(b.sim.now, m.publish, outcome) })
}
