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
func (w *World) operate() {
	w.after(w.soon(3*time.Second), func() {
		if w.healed {
			return
		}
		if letters := w.store.Letters(); len(letters) > 0 {
			letter := letters[w.rand.IntN(len(letters))]
			w.decide(letter.Event, w.rand.IntN(6))
		}
		w.operate()
	})
}

// redriveSome lets an operator redrive some of those who have just died, before their relay has done anything else.
func (w *World) redriveSome(dead []core.Death) {
	for i := range dead {
		if !w.healed && w.chance(0.2) {
			w.after(w.soon(time.Millisecond), func() { w.decide(dead[i].ID, 0) })
		}
	}
}

// do does a verb to events that are in some state; those in no state for it are left alone.
func (w *World) do(verb check.Verb, reason string, events ...outbox.ID) {
	if len(events) == 0 {
		return
	}
	if _, err := w.store.Operate(verb, memstore.Order{Action: w.newID(), Actor: "ada", Reason: reason}, events...); err != nil {
		w.problemf("%s: %v", verb, err)
	}
}

// decide does one thing to a dead event, or nothing.
func (w *World) decide(id outbox.ID, what int) {
	if t := w.broker.traits[id]; t != nil && t.poison && what == 0 {
		return // nobody sends that one again while it kills
	}
	switch what {
	case 0:
		w.do(check.Redrive, "again", id)
	case 1:
		w.do(check.Skip, "the others cannot wait", id)
	case 2:
		w.do(check.Discard, "not wanted", id)
	case 3:
		w.free(func(row memstore.EventRow) bool {
			return w.chance(0.5) && (row.State == core.Parked || row.State == core.Waiting)
		})
	default:
		return
	}
	if w.chance(0.5) {
		w.ring()
	}
}

// free releases events that wait or are parked.
func (w *World) free(which func(memstore.EventRow) bool) {
	w.do(check.Free, "it may go on", w.those(which)...)
}

func (w *World) those(which func(memstore.EventRow) bool) []outbox.ID {
	var ids []outbox.ID
	for _, row := range w.store.Events() {
		if which(row) {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// pauseSome pauses everything, a topic or a type, and resumes it some time later.
func (w *World) pauseSome() bool {
	scope, name := core.ScopeAll, ""
	switch w.rand.IntN(5) {
	case 0, 1:
		scope, name = core.ScopeTopic, w.plan.topics[w.rand.IntN(len(w.plan.topics))]
	case 2, 3:
		scope, name = core.ScopeType, w.plan.kinds[w.rand.IntN(len(w.plan.kinds))].name
	}
	if !w.pauseScope(scope, name) {
		return false
	}
	w.after(w.soon(w.plan.config.Lease), func() {
		if !w.healed {
			w.resumeScope(scope, name)
		}
	})
	return true
}

func (w *World) pauseScope(scope core.Scope, name string) bool {
	outcome, err := w.store.Pause(memstore.Order{Action: w.newID(), Actor: "ada", Reason: "for a while"}, scope, name)
	w.logf("%s %s is paused: %s %v", scope, name, outcome, err)
	return outcome == memstore.Done
}

func (w *World) resumeScope(scope core.Scope, name string) {
	stands := slices.ContainsFunc(w.store.Pauses(), func(p core.Pause) bool { return p.Scope == scope && p.Name == name })
	if !stands && w.tally[Failover] > 0 {
		return // a failover took it back
	}
	if outcome, err := w.store.Resume(memstore.Order{Action: w.newID(), Actor: "ada", Reason: "long enough"}, scope, name); outcome != memstore.Done {
		w.problemf("%s %s cannot be resumed: %s %v", scope, name, outcome, err)
	}
	w.logf("%s %s is resumed", scope, name)
}

// covers tells whether a pause is about events of the topic and type.
func covers(pause core.Pause, topic, eventType string) bool {
	return pause.Scope == core.ScopeAll || pause.Scope == core.ScopeTopic && pause.Name == topic || pause.Scope == core.ScopeType && pause.Name == eventType
}

// tidy does what the plan says with what blocks others, when the faults are over.
func (w *World) tidy() {
	blocking := w.those(func(row memstore.EventRow) bool { return row.State == core.DeadBlocking })
	switch w.plan.ending {
	case redriveAll:
		w.do(check.Redrive, "all is well again", blocking...)
	case skipAll:
		w.do(check.Skip, "all is well again", blocking...)
	case leaveAll:
	}
}

// unknown tells whether nobody knows the type.
func (w *World) unknown(eventType string) bool {
	return slices.ContainsFunc(w.plan.kinds, func(k kind) bool { return k.name == eventType && k.unknown })
}
