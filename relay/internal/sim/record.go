package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// recorder writes down what the judge wants to know.
type recorder struct {
	world    *World
	checker  *check.Checker
	arrivals uint64
	leases   map[tenure]time.Duration // those not given back, as their relays see or saw them: until when
	released map[tenure]bool
	believed map[tenure]time.Duration // until when their relays think that they hold the lanes
	jumps    []jump
	doubtful []doubtful
	alarms   []string
	undone   map[outbox.ID]bool // events whose durable commits a failover took back
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

// tenure is one holding of a lane by one life of a relay.
type tenure struct {
	relay string
	token outbox.ID
	lane  int16
}

// jump is a step forward of the database's clock, which shortens every lease, or a lane's lease that
// somebody ended.
type jump struct {
	at, by time.Duration
	lane   int16 // everyLane: all
}

const everyLane int16 = -1

// doubtful is a transaction that committed. A crash takes it back if it did not wait for the disk, and a failover
// in any case.
type doubtful struct {
	key   string
	event outbox.ID
}

func newRecorder(w *World) recorder {
	return recorder{
		world: w, checker: check.New(), leases: map[tenure]time.Duration{}, released: map[tenure]bool{},
		believed: map[tenure]time.Duration{}, undone: map[outbox.ID]bool{}, changed: map[change]bool{}, unsure: map[unsure]bool{},
	}
}

func (r *recorder) next() uint64 { return r.arrivals + 1 }

// at is an instant as the judge reads it.
func at(t time.Duration) int64 { return int64(t) }

func (r *recorder) fault(f check.Fault) { r.checker.Add(check.Record{Fault: &f}) }

// moment records a fault that is over as soon as it has begun.
func (r *recorder) moment(kind check.FaultKind, relay string, id outbox.ID) {
	now := at(r.world.now)
	r.fault(check.Fault{Kind: kind, Relay: relay, ID: id, From: now, To: now + 1, First: r.next(), Last: r.next()})
}

func (r *recorder) delivery(e *core.Event, topic string) {
	r.arrivals++
	r.checker.Add(check.Record{Delivery: &check.Delivery{
		Index: r.arrivals, ID: e.ID, Type: e.Type, Topic: topic, Key: e.Aggregate.ID,
		Payload: check.SumOf(e.Payload), Headers: check.SumOf(e.Headers),
	}})
}

// observe takes a step of a core. What a store's answer tells happened when the call was run, and not when
// the relay heard of it.
func (r *recorder) observe(l *life, s core.Step) {
	w := r.world
	w.logf("%s %s lane=%d event=%s class=%d state=%d result=%s attempt=%d %s%s", l.name, s.Do, s.Lane, short(s.Event), s.Class, s.State, s.Result, s.Attempt, s.Topic, s.Detail)
	step := check.Step{
		Relay: l.name, Token: s.Token.String(), Lane: int(s.Lane), At: at(w.now), Next: r.next(), ID: s.Event,
	}
	key := tenure{l.name, s.Token, s.Lane}
	if s.Do == core.DidRenew && r.released[key] {
		return // the answer to a heartbeat that was under way when it gave the lane back
	}
	switch s.Do {
	case core.DidAcquire, core.DidRenew:
		step.Do, step.At = check.Acquire, at(w.ranAt())
		if s.Do == core.DidRenew {
			step.Do = check.Renew
		}
		until := r.shortened(s.Lane, s.Since)
		r.leases[key] = max(r.leases[key], until)
		step.Until = at(until)
		r.believed[key] = s.Since + w.plan.config.Lease
	case core.DidRelease:
		step.Do, step.At = check.Release, at(w.ranAt())
		delete(r.leases, key)
		r.released[key] = true
	case core.DidLose:
		step.Do = check.Lose
	case core.DidPublish:
		step.Do = check.Publish
		if end := w.now + w.plan.config.Deadline; end > r.believed[key] {
			w.problemf("%s publishes %s, which may take until %v after its lease ends", l.name, short(s.Event), end-r.believed[key])
		}
		for _, pause := range l.pauses {
			if covers(pause, s.Topic, s.Type) {
				w.problemf("%s publishes %s and has heard that %s %s is paused", l.name, short(s.Event), pause.Scope, pause.Name)
			}
		}
	case core.DidAck:
		step.Do = check.Ack
	case core.DidRefuse:
		step.Do, step.Class = check.Refuse, class(s)
	case core.DidSettle:
		step.Do, step.At, step.To = check.Settle, at(w.ranAt()), check.State(s.State)
		step.Result = result(s.Result)
		r.contractKept(l, s)
		r.witnessed(l, s)
	case core.DidCharge:
		step.Do, step.Class = check.Charge, class(s)
		if row, exists := w.store.Event(s.Event); exists && s.Attempt <= int(row.Attempts) && w.store.Lanes()[s.Lane].Token == s.Token {
			w.problemf("%s charges %s, and its attempts stay %d", l.name, short(s.Event), s.Attempt)
		}
	case core.DidPause:
		l.pausedAt[s.Topic] = w.now
		return
	case core.DidResume, core.DidFail:
		return
	case core.DidAlarm:
		r.alarms = append(r.alarms, s.Detail)
		return
	}
	r.checker.Add(check.Record{Step: &step})
}

// witnessed looks whether the settle that a relay takes for written down has changed the row, and whether one that it
// takes for too late has not.
func (r *recorder) witnessed(l *life, s core.Step) {
	by := unsure{tenure{l.name, s.Token, s.Lane}, s.Event}
	doubted, changed := r.unsure[by], r.changed[change{s.Event, s.State, r.world.ranAt()}]
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
			r.world.problemf("%s takes %s for written down as %d, and its settle has not changed the row", l.name, short(s.Event), s.State)
		case s.Result == core.Unchanged && (doubted || changed):
			r.world.problemf("%s takes %s for not written down as %d, and one of its settles may have done it", l.name, short(s.Event), s.State)
		}
	case core.Ready, core.Waiting, core.Published, core.Discarded: // told again and again, they change nothing
		if s.Result == core.Unchanged {
			r.world.problemf("%s says that its settle of %s to %d came too late", l.name, short(s.Event), s.State)
		}
	}
}

// contractKept looks whether a death blocks exactly where the contract says so.
func (r *recorder) contractKept(l *life, s core.Step) {
	if s.State != core.Dead && s.State != core.DeadBlocking {
		return
	}
	route, _ := (registry{r.world.plan, l.old}).Route(s.Type)
	if blocks := s.State == core.DeadBlocking; blocks != route.Block {
		r.world.problemf("%s lets the death of %s block=%t, and its contract says otherwise", l.name, short(s.Event), blocks)
	}
}

// shortened is when a lease ends that began then, after all that has shortened it since.
func (r *recorder) shortened(lane int16, since time.Duration) time.Duration {
	until := since + r.world.plan.config.Lease
	for _, j := range r.jumps {
		if j.at >= since && (j.lane == lane || j.lane == everyLane) {
			until = min(until, max(j.at, until-j.by))
		}
	}
	return until
}

// jumped shortens the leases that there are. For the judge it is as if they were given back then.
func (r *recorder) jumped(lane int16, by time.Duration) {
	now := r.world.now
	r.jumps = append(r.jumps, jump{now, by, lane})
	for key, until := range r.leases {
		if lane != everyLane && key.lane != lane {
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
	changes := r.world.store.Changes()
	for _, c := range changes {
		r.world.logf("row %s %d -> %d by %s", short(c.ID), c.From, c.To, c.By)
		r.changed[change{c.ID, c.To, r.world.now}] = true
		r.checker.Add(check.Record{Change: &check.Change{ID: c.ID, From: check.State(c.From), To: check.State(c.To)}})
	}
	return len(changes) > 0
}

// end writes the tables down and asks for the verdict.
func (r *recorder) end(drained bool) *check.Verdict {
	for _, d := range r.doubtful {
		outcome := check.OK
		if _, exists := r.world.store.Event(d.event); !exists {
			outcome = check.Failed
			if r.undone[d.event] {
				outcome = check.Undone
			}
		}
		r.checker.Add(check.Record{Tx: &check.Tx{Key: d.key, Outcome: outcome}})
	}
	for _, record := range r.world.store.Dump() {
		r.checker.Add(record)
	}
	end := check.End{Drained: drained, Dumped: true, Interleaved: true}
	for _, k := range r.world.plan.kinds {
		if k.unknown {
			end.UnknownTypes = append(end.UnknownTypes, k.name)
		}
	}
	if r.world.plan.config.Depth > 1 {
		end.Pipelined = r.world.plan.topics
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
		return check.OfRoute
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
