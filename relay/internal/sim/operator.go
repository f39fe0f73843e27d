package sim

import (
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// operate lets an operator look at dead and parked events now and then.
func (sim *Simulation) operate() {
	sim.after(sim.soon(3*time.Second), func() {
		if sim.healed {
			return
		}
		if letters := sim.store.Letters(); len(letters) > 0 {
			letter := letters[sim.rand.IntN(len(letters))]
			sim.decide(letter.Event, sim.rand.IntN(6))
		}
		sim.operate()
	})
}

// redriveSome lets an operator redrive some of those who have just died, before their relay has done anything else.
func (sim *Simulation) redriveSome(dead []core.Death) {
	for i := range dead {
		if !sim.healed && sim.chance(sim.plan.hasty) {
			sim.after(sim.soon(time.Millisecond), func() { sim.decide(dead[i].ID, 0) })
		}
	}
}

// do does a verb to events that are in some state; those in no state for it are left alone.
func (sim *Simulation) do(verb check.Verb, reason string, events ...outbox.ID) {
	if len(events) == 0 {
		return
	}
	if _, err := sim.store.Operate(verb, memstore.Order{Action: sim.newID(), Actor: "ada", Reason: reason},
		events...); err !=
		nil {
		sim.problemf("%s: %v", verb, err)
	}
}

// decide does one thing to a dead event, or nothing.
func (sim *Simulation) decide(id outbox.ID, what int) {
	if t := sim.broker.traits[id]; t != nil && t.poison && what == 0 {
		return // nobody sends that one again while it kills
	}
	switch what {
	case 0:
		sim.do(check.Redrive, "again", id)
	case 1:
		sim.do(check.Skip, "the others cannot wait", id)
	case 2:
		sim.do(check.Discard, "not wanted", id)
	case 3:
		sim.free(func(row memstore.EventRow) bool {
			return sim.chance(0.5) && (row.State == core.Parked || row.State == core.Waiting)
		})
	default:
		return
	}
	if sim.chance(0.5) {
		sim.ring()
	}
}

// free releases events that wait or are parked.
func (sim *Simulation) free(which func(memstore.EventRow) bool) {
	sim.do(check.Free, "it may go on", sim.those(which)...)
}

func (sim *Simulation) those(which func(memstore.EventRow) bool) []outbox.ID {
	var ids []outbox.ID
	for _, row := range sim.store.Events() {
		if which(row) {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// pauseSome pauses everything, a topic or a type, and resumes it some time later.
func (sim *Simulation) pauseSome() bool {
	scope, name := core.ScopeAll, ""
	switch sim.rand.IntN(5) {
	case 0, 1:
		scope, name = core.ScopeTopic, sim.plan.topics[sim.rand.IntN(len(sim.plan.topics))]
	case 2, 3:
		scope, name = core.ScopeType, sim.plan.kinds[sim.rand.IntN(len(sim.plan.kinds))].name
	}
	if !sim.pauseScope(scope, name) {
		return false
	}
	sim.after(sim.soon(sim.plan.config.Lease), func() {
		if !sim.healed {
			sim.resumeScope(scope, name)
		}
	})
	return true
}

func (sim *Simulation) pauseScope(scope core.Scope, name string) bool {
	outcome, err := sim.store.Pause(memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "for a while"}, scope, name)
	sim.logf("%s %s is paused: %s %v", scope, name, outcome, err)
	return outcome == memstore.Done
}

func (sim *Simulation) resumeScope(scope core.Scope, name string) {
	stands := slices.ContainsFunc(sim.store.Pauses(), func(p core.Pause) bool {
		return p.Scope == scope && p.Name == name
	})
	if !stands && sim.tally[Failover] > 0 {
		return // a failover took it back
	}
	if outcome, err := sim.store.Resume(memstore.Order{Action: sim.newID(), Actor: "ada", Reason: "long enough"}, scope,
		name); outcome != memstore.Done {
		sim.problemf("%s %s cannot be resumed: %s %v", scope, name, outcome, err)
	}
	sim.logf("%s %s is resumed", scope, name)
}

// watchPauses looks whether a publish is of something that its relay knows to be paused.
func (sim *Simulation) watchPauses(relay *relayProcess, s core.Step) {
	for _, pause := range relay.pauses {
		if covers(pause, s.Topic, s.Type) {
			sim.problemf("%s publishes %s and knows that %s %s is paused", relay.name, short(s.Event), pause.Scope, pause.Name)
		}
	}
}

// covers tells whether a pause is about events of the topic and type.
func covers(pause core.Pause, topic, eventType string) bool {
	return pause.Scope == core.ScopeAll || pause.Scope == core.ScopeTopic && pause.Name == topic ||
		pause.Scope == core.ScopeType && pause.Name == eventType
}

// tidy does what the plan says with what blocks others, when the faults are over.
func (sim *Simulation) tidy() {
	blocking := sim.those(func(row memstore.EventRow) bool { return row.State == core.DeadBlocking })
	switch sim.plan.ending {
	case redriveAll:
		sim.do(check.Redrive, "all is well again", blocking...)
	case skipAll:
		sim.do(check.Skip, "all is well again", blocking...)
	case leaveAll:
	}
}

// unknown tells whether nobody knows the type.
func (sim *Simulation) unknown(eventType string) bool {
	return slices.ContainsFunc(sim.plan.kinds, func(k kind) bool { return k.name == eventType && k.unknown })
}
