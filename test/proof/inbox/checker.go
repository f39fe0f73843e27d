package inbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A tally is what a history shows. The checker believes the tables and the broker; journals explain, and never excuse a
// loss.
type tally struct {
	Events, Copies, Deliveries int
	// Concurrent is how many events had two deliveries at work at the same time.
	Concurrent int
	// Skipped is how many deliveries were acknowledged because the event was handled before.
	Skipped int
	// Delayed is how often a delivery was told to wait.
	Delayed int
	// Lost events have no effect, and should have.
	Lost int
	// Double is how many effects there are besides the first of each event.
	Double int
	// Phantom are effects of what was never fed, or must have none.
	Phantom int
	// Between is how many effects were cut off from their marks: the process was killed or stood still, or Redis forgot.
	Between int
	// Lapsed is how many lost their hold although their process was not touched: the machine was too busy to extend it.
	Lapsed int
	// Unexplained are double effects of events none of whose effects was cut off.
	Unexplained int
	// Early are deliveries that were acknowledged before there was an effect.
	Early int
	// Unguarded are effects of a guarded consumer without a hold.
	Unguarded int
	// Again are deliveries of a message after its first, and Failed those after which it was to come again.
	Again, Failed int
	// Dead are dead letters, WronglyDead those of events that can be handled, NotDead events without one that cannot.
	Dead, WronglyDead, NotDead int
	Left                       int
	// Kills by the point, under "" those at random moments; Stops are processes that stood still.
	Kills map[string]int
	Stops int
	// Notes are the first few of what is wrong, for people.
	Notes []string
}

func (v *tally) notef(format string, args ...any) {
	if len(v.Notes) < 10 {
		v.Notes = append(v.Notes, fmt.Sprintf(format, args...))
	}
}

func check(h *history) *tally {
	v := &tally{Events: len(h.Events), Dead: len(h.Dead), Left: h.Left, Kills: map[string]int{}}
	for _, e := range h.Endings {
		if e.Killed {
			v.Kills[e.Point]++
		}
		if e.Stopped {
			v.Stops++
		}
	}
	v.checkEffects(h)
	v.checkDeliveries(h)
	return v
}

// checkEffects counts what happened never, twice, or without a reason.
func (v *tally) checkEffects(h *history) {
	effects := map[outbox.ID][]effect{}
	for _, e := range h.Effects {
		effects[e.Event] = append(effects[e.Event], e)
	}
	for _, e := range h.Events {
		v.Copies += e.Copies - 1
		own := effects[e.ID]
		delete(effects, e.ID)
		_, dead := h.Dead[e.ID]
		if e.Kind.hopeless() {
			v.Phantom += len(own)
			if !dead {
				v.NotDead++
				v.notef("%s cannot be handled and has no dead letter", e.ID)
			}
			continue
		}
		if dead {
			v.WronglyDead++
			v.notef("%s can be handled and is dead: %s", e.ID, h.Dead[e.ID])
		}
		v.checkEvent(h, e, own)
	}
	for id, own := range effects {
		v.Phantom += len(own)
		v.notef("%s was never fed and has an effect", id)
	}
}

func (v *tally) checkEvent(h *history, e event, own []effect) {
	if len(own) == 0 {
		v.Lost++
		v.notef("%s (%s) has no effect", e.ID, e.Kind)
		return
	}
	cut := 0
	for i, one := range own {
		if h.Form != inRedis {
			break
		}
		if !h.wasHeld(one) {
			v.Unguarded++
			v.notef("%s happened without a hold, in %s", e.ID, one.Worker)
		}
		switch h.markOf(one, own[i+1:]) {
		case missing:
			cut++
			v.Between++
		case late:
			cut++
			v.Lapsed++
		case made:
		}
	}
	double := len(own) - 1
	v.Double += double
	if double > cut {
		v.Unexplained += double - cut
		v.notef("%s (%s) happened %d times, and %d of these were cut off from their marks", e.ID, e.Kind, len(own), cut)
	}
}

// wasHeld tells whether the process held the event before its effect.
func (h *history) wasHeld(e effect) bool {
	return slices.ContainsFunc(h.Lines[e.Worker], func(l line) bool {
		return l.What == held && l.Event == e.Event && !l.At.After(e.At)
	})
}

// mark is what became of an effect's mark.
type mark int

const (
	made    mark = iota
	missing      // the process was killed or stood still before it was made, or Redis has forgotten it or was away
	late         // it was refused, because the hold had lapsed and another delivery had the event
)

// markOf says what became of an effect's mark. Later are the other effects of the event: a mark behind one of the same
// process is that one's.
func (h *history) markOf(e effect, later []effect) mark {
	next := slices.IndexFunc(later, func(other effect) bool { return other.Worker == e.Worker })
	var lastHeld time.Time
	for _, l := range h.Lines[e.Worker] {
		if l.Event != e.Event || next >= 0 && !l.At.Before(later[next].At) {
			continue
		}
		switch behind := !l.At.Before(e.At); {
		case l.What == held:
			lastHeld = l.At
		case l.What == marked && behind:
			if slices.ContainsFunc(h.Forgot, func(at time.Time) bool { return at.After(l.At) }) {
				return missing
			}
			return made
		case l.What == rejected && behind && l.At.Sub(lastHeld) >= h.Hold && !h.Endings[e.Worker].Stopped:
			return late
		}
	}
	if ending := h.Endings[e.Worker]; ending.Killed || ending.Stopped || len(h.Forgot) > 0 {
		return missing
	}
	return made
}

// checkDeliveries reads the verdicts: who was acknowledged when, and who was at work at the same time.
func (v *tally) checkDeliveries(h *history) {
	first := map[outbox.ID]time.Time{} // effect
	for _, e := range h.Effects {
		if at, known := first[e.Event]; !known || e.At.Before(at) {
			first[e.Event] = e.At
		}
	}
	work := map[outbox.ID][]span{}
	for _, lines := range h.Lines {
		for _, l := range lines {
			if l.What != verdict {
				continue
			}
			v.checkDelivery(l, first)
			work[l.Event] = append(work[l.Event], span{l.At.Add(-l.Took), l.At})
		}
	}
	for _, spans := range work {
		if overlap(spans) {
			v.Concurrent++
		}
	}
}

func (v *tally) checkDelivery(l line, first map[outbox.ID]time.Time) {
	v.Deliveries++
	switch l.Outcome {
	case consumer.Delayed:
		v.Delayed++
		return // it is another try of the same delivery
	case consumer.Duplicate:
		v.Skipped++
	case consumer.Failed:
		v.Failed++
	case consumer.Handled, consumer.Ignored, consumer.Unknown, consumer.Poisoned:
	}
	if l.Attempt > 1 {
		v.Again++
	}
	at, happened := first[l.Event]
	if acknowledged := (consumer.Verdict{Outcome: l.Outcome}).Acknowledge(); acknowledged &&
		(!happened || at.After(l.At)) {
		v.Early++
		v.notef("%s was acknowledged as %s before it had an effect", l.Event, l.Outcome)
	}
}

// span is from when to when a delivery was at work.
type span struct{ from, to time.Time }

func overlap(spans []span) bool {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from.Before(spans[i-1].to) {
			return true
		}
	}
	return false
}
