package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// recorder writes down what the checker wants to know.
type recorder struct {
	sim      *Simulation
	checker  *check.Checker
	arrivals uint64
	leases   map[tenure]time.Duration // those not given back, as their relays see or saw them: until when
	released map[tenure]bool
	believed map[tenure]time.Duration // until when their relays think that they hold the lanes
	jumps    []jump
	doubtful []doubtful
	alarms   []string
	undone   map[outbox.ID]bool          // events whose durable commits a failover took back
	reverted map[outbox.ID]time.Duration // when a failover took back what was last done to an event
	changed  map[change]bool
	unsure   map[unsure]bool
}

// change is what was done to an event, and when.
type change struct {
	event outbox.ID
	to    core.State
	at    time.Duration
}

// unsure is an event whose settle was not answered, in one tenure: sent again, it is taken for applied.
type unsure struct {
	tenure
	event outbox.ID
}

// tenure is one holding of a lane by one process of a relay.
type tenure struct {
	relay string
	token outbox.ID
	lane  int16
}

// jump is a step forward of the database's clock, which shortens every lease, or a relay's lease that
// somebody ended.
type jump struct {
	at, by time.Duration
	relay  string // everybody: all
}

const everybody = ""

// doubtful is a transaction that committed. A crash takes it back if it did not wait for the disk, and a failover
// in any case.
type doubtful struct {
	key   string
	event outbox.ID
}

func newRecorder(sim *Simulation) recorder {
	return recorder{
		sim: sim, checker: check.New(), leases: map[tenure]time.Duration{}, released: map[tenure]bool{},
		believed: map[tenure]time.Duration{}, undone: map[outbox.ID]bool{}, changed: map[change]bool{},
		reverted: map[outbox.ID]time.Duration{},
		unsure:   map[unsure]bool{},
	}
}

func (r *recorder) next() uint64 { return r.arrivals + 1 }

// at is an instant as the checker reads it.
func at(t time.Duration) int64 { return int64(t) }

func (r *recorder) fault(f check.Fault) { r.checker.Add(check.Record{Fault: &f}) }

// moment records a fault that is over as soon as it has begun.
func (r *recorder) moment(kind check.FaultKind, relay string, id outbox.ID) {
	now := at(r.sim.now)
	r.fault(check.Fault{Kind: kind, Relay: relay, ID: id, From: now, To: now + 1, First: r.next(), Last: r.next()})
}

func (r *recorder) delivery(e *core.Event, topic string, request int64) {
	r.arrivals++
	r.checker.Add(check.Record{Delivery: &check.Delivery{
		Index: r.arrivals, Request: request, ID: e.ID, Type: e.Type, Topic: topic, Key: e.Aggregate.ID,
		Payload: check.SumOf(e.Payload), Headers: check.SumOf(e.Headers),
	}})
}

// observe takes a step of a core. What a store's answer tells happened when the call was run, and not when
// the relay learned of it.
func (r *recorder) observe(relay *relayProcess, s core.Step) {
	sim := r.sim
	sim.logf("%s %s lane=%d event=%s class=%d state=%d result=%s attempt=%d %s%s", relay.name, s.Do, s.Lane,
		short(s.Event),
		s.Class, s.State, s.Result, s.Attempt, s.Topic, s.Detail)
	step := check.Step{
		Relay: relay.name, Token: s.Token.String(), Lane: int(s.Lane), At: at(sim.now), Next: r.next(), ID: s.Event,
		Request: s.Request,
	}
	if k := sim.plan.kindOf(s.Type); s.Request != 0 && k != nil && k.Topic != s.Topic {
		step.Topic = s.Topic
	}
	key := tenure{relay.name, s.Token, s.Lane}
	if s.Do == core.DidRenew && r.released[key] {
		return // the answer to a heartbeat that was under way when it gave the lane back
	}
	switch s.Do {
	case core.DidAcquire, core.DidRenew:
		step.Do, step.At = check.Acquire, at(sim.ranAt())
		if s.Do == core.DidRenew {
			step.Do = check.Renew
		}
		until := r.shortened(relay.name, s.Since)
		r.leases[key] = max(r.leases[key], until)
		step.Until = at(until)
		r.believed[key] = s.Since + sim.plan.config.Lease
	case core.DidRelease:
		step.Do, step.At = check.Release, at(sim.ranAt())
		delete(r.leases, key)
		r.released[key] = true
	case core.DidLose:
		step.Do = check.Lose
	case core.DidPublish:
		step.Do = check.Publish
		if end := sim.now + sim.plan.config.Deadline; end > r.believed[key] {
			sim.problemf("%s publishes %s, which may take until %v after its lease ends", relay.name, short(s.Event),
				end-r.believed[key])
		}
		sim.watchPauses(relay, s)
		sim.watchLimits(relay, s.Topic)
	case core.DidAck:
		step.Do = check.Ack
	case core.DidRefuse:
		step.Do, step.Class = check.PublishFailed, class(s)
	case core.DidSettle:
		step.Do, step.At, step.To = check.Settle, at(sim.ranAt()), check.State(s.State)
		step.Result = result(s.Result)
		r.checkContract(relay, s)
		r.witnessed(relay, s)
	case core.DidSettleRequest:
		step.Do, step.At, step.Result = check.Settle, at(sim.ranAt()), result(s.Result)
		if s.Ended == core.RequestDelivered {
			step.To = check.Published
		}
	case core.DidCharge:
		step.Do, step.Class = check.Charge, class(s)
		// A dead one was redriven, and a failover took that back, or the death as well: the settle finds out.
		row, exists := sim.store.Event(s.Event)
		open := row.State == core.Ready || row.State == core.Retrying || row.State == core.Waiting
		if at, was := r.reverted[s.Event]; was && sim.now-at < sim.plan.config.Lease {
			open = false
		}
		if exists && open && s.Attempt <= int(row.Attempts) && sim.store.Lanes()[s.Lane].Token == s.Token {
			sim.problemf("%s charges %s, and its attempts stay %d", relay.name, short(s.Event), s.Attempt)
		}
	case core.DidPause:
		relay.pausedAt[s.Topic] = sim.now
		return
	case core.DidResume, core.DidForget, core.DidFail:
		return
	case core.DidAlarm:
		r.alarms = append(r.alarms, s.Detail)
		return
	}
	r.checker.Add(check.Record{Step: &step})
}

// witnessed looks whether the settle that a relay takes for written down has changed the row, and whether one that it
// takes for too late has not.
func (r *recorder) witnessed(relay *relayProcess, s core.Step) {
	by := unsure{tenure{relay.name, s.Token, s.Lane}, s.Event}
	doubted, changed := r.unsure[by], r.changed[change{s.Event, s.State, r.sim.ranAt()}]
	switch s.Result {
	case core.Uncertain:
		r.unsure[by] = true
		return
	case core.Stale: // of a lane beside its own perhaps: it is sent again, and as unsure as before
		return
	case core.Applied, core.Unchanged:
		delete(r.unsure, by)
	}
	switch s.State {
	case core.Retrying, core.Parked, core.DeadBlocking, core.Dead:
		switch {
		case s.Result == core.Applied && !doubted && !changed:
			r.sim.problemf("%s takes %s for written down as %d, and its settle has not changed the row", relay.name,
				short(s.Event), s.State)
		case s.Result == core.Unchanged && (doubted || changed):
			r.sim.problemf("%s takes %s for not written down as %d, and one of its settles may have done it", relay.name,
				short(s.Event), s.State)
		}
	case core.Ready, core.Waiting, core.Published, core.Discarded: // told again and again, they change nothing
		if s.Result == core.Unchanged {
			r.sim.problemf("%s says that its settle of %s to %d came too late", relay.name, short(s.Event), s.State)
		}
	}
}

// checkContract looks whether a death blocks exactly where the contract says so.
func (r *recorder) checkContract(relay *relayProcess, s core.Step) {
	if s.State != core.Dead && s.State != core.DeadBlocking {
		return
	}
	contract, _ := (registry{r.sim.plan, relay.old}).Route(s.Type)
	if blocks := s.State == core.DeadBlocking; blocks != contract.Block {
		r.sim.problemf("%s lets the death of %s block=%t, and its contract says otherwise", relay.name,
			short(s.Event), blocks)
	}
}

// shortened is when a lease ends that began then, after all that has shortened it since.
func (r *recorder) shortened(relay string, since time.Duration) time.Duration {
	until := since + r.sim.plan.config.Lease
	for _, j := range r.jumps {
		if j.at >= since && (j.relay == relay || j.relay == everybody) {
			until = min(until, max(j.at, until-j.by))
		}
	}
	return until
}

// jumped shortens the leases that there are. For the checker it is as if they were given back then.
func (r *recorder) jumped(relay string, by time.Duration) {
	now := r.sim.now
	r.jumps = append(r.jumps, jump{now, by, relay})
	r.sim.shaken = now
	for key, until := range r.leases {
		if relay != everybody && key.relay != relay {
			continue
		}
		until = min(until, max(now, until-by))
		r.leases[key] = until
		r.checker.Add(check.Record{Step: &check.Step{
			Do: check.Release, Relay: key.relay, Token: key.token.String(), Lane: int(key.lane), At: at(until),
		}})
	}
}

// changes passes on what the store changed.
func (r *recorder) changes() bool {
	changes := r.sim.store.Changes()
	for _, c := range changes {
		r.sim.logf("row %s %d -> %d by %s", short(c.ID), c.From, c.To, c.By)
		r.changed[change{c.ID, c.To, r.sim.now}] = true
		r.checker.Add(check.Record{Change: &check.Change{ID: c.ID, From: check.State(c.From), To: check.State(c.To)}})
	}
	return len(changes) > 0
}

// end writes the tables down and asks for the verdict.
func (r *recorder) end(drained bool) *check.Verdict {
	for _, d := range r.doubtful {
		outcome := check.OK
		if _, exists := r.sim.store.Event(d.event); !exists {
			outcome = check.Failed
			if r.undone[d.event] {
				outcome = check.Undone
			}
		}
		r.checker.Add(check.Record{Tx: &check.Tx{Key: d.key, Outcome: outcome}})
	}
	for _, record := range r.sim.store.Dump() {
		r.checker.Add(record)
	}
	end := check.End{Drained: drained, Dumped: true, Interleaved: true}
	for _, k := range r.sim.plan.kinds {
		if k.unknown {
			end.UnknownTypes = append(end.UnknownTypes, k.name)
		}
	}
	for _, topic := range r.sim.plan.topics {
		if r.sim.plan.depth(topic) > 1 {
			end.Pipelined = append(end.Pipelined, topic)
		}
	}
	r.checker.Add(check.Record{End: &end})
	return r.checker.Verdict(check.Floor{Undrained: !drained})
}

func class(s core.Step) check.Class {
	if s.Contract {
		return check.Broken
	}
	switch s.Class {
	case core.Rejected:
		return check.OfEvent
	case core.Terminal:
		return check.Terminal
	case core.RouteFault:
		return check.OfTopic
	case core.Unknown:
		return check.InDoubt
	case core.NotSent:
		return check.Shutdown
	case core.Acknowledged:
	}
	return ""
}

func result(r core.Result) check.Result {
	switch r {
	case core.Applied:
		return check.Applied
	case core.Stale:
		return check.Stale
	case core.Unchanged:
		return check.Unchanged
	case core.Uncertain:
	}
	return check.Uncertain
}
