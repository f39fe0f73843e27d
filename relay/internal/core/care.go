package core

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// An event can kill the process that publishes it. When owners of a lane keep dying before they have got past where it
// was, the next one takes care: it publishes one event at a time and notes each in the lane's row before. The one
// that was noted in three deaths is taken for the cause.

// The crashes in a row from which on a lane's events are sent one at a time, and those of a noted event
// from which on it is taken for their cause.
const (
	crashesToCare       = 3
	crashesToQuarantine = 3
)

// clearNotes takes back the note of an event that was answered and is not settled, before anything else is
// sent: only an owner that dies while the event is in flight counts. One that has outlived a publish of it speaks for
// it, as a death without it does: where a topic hangs, its first event is in flight whenever relays are killed for
// other reasons.
func (c *Core) clearNotes(now time.Duration) {
	c.unnote = slices.DeleteFunc(c.unnote, func(l *lane) bool { return l.lost || l.noted == outbox.ID{} })
	if len(c.unnote) == 0 || c.noting || c.shut(&c.note, now) {
		return
	}
	c.noting = true
	l := c.unnote[0]
	note := Note{Owner: c.members.owner, Tenure: l.tenure(), Outlived: l.outlived}
	begin(c, OpNote, &c.note,
		func(ctx context.Context, store Store) (bool, error) {
			return store.Note(ctx, note)
		},
		func(_ time.Duration, _ bool, err error) {
			c.noting = false
			if err == nil {
				l.forgetNote()
				c.endCare()
			}
		})
}

// noteFirst writes down which event is sent next. When the relay dies of it, the next owner knows.
func (c *Core) noteFirst(l *line, r *row) {
	c.noting = true
	l.queued = true
	note := Note{Owner: c.members.owner, Tenure: r.lane.tenure(), Event: r.ID}
	begin(c, OpNote, &c.note,
		func(ctx context.Context, store Store) (bool, error) { return store.Note(ctx, note) },
		func(now time.Duration, held bool, err error) {
			c.noting = false
			l.queued = false
			switch {
			case err == nil && !held:
				c.lose(r.lane, "the lane is another relay's")
			case r.line != l || l.inFlight > 0 || l.rows[0] != r: // dropped meanwhile
				c.run(l)
			case err != nil || !c.mayPublish(r.lane, now):
				l.notBefore = max(l.notBefore, c.note.retryAt)
				c.run(l)
			default:
				r.lane.noted = r.ID
				c.run(l)
			}
		})
}

// noteStands tells that an event of some lane was sent alone and answered, and that its note is in the database
// until its settle is. Whoever dies of another event meanwhile must not be counted against it.
func (c *Core) noteStands() bool {
	return slices.ContainsFunc(c.sorted, func(l *lane) bool { return l.noted != outbox.ID{} && c.soonWritten(l) > 0 })
}

// suspected ends an event that was the one in flight whenever a relay died, unless it is too early for that.
func (c *Core) suspected(now time.Duration, l *line, r *row) bool {
	if !r.lane.isSuspect(r.ID) || c.tooEarly(now, r.lane) > 0 {
		return false
	}
	r.lane.suspect, r.lane.noted = outbox.ID{}, r.ID // whoever redrives it wants it tried again
	c.alarm(r.Lane, "event "+r.ID.String()+" is quarantined: relays died whenever it was published alone")
	c.die(l.key, r, r.Attempts, reasonCrashSuspect, "relays died whenever this event was published alone")
	return true
}

// awaitEnd keeps a suspect at the head of its line until it may be ended. Written down as a retry, it would be no
// suspect any more if this relay died meanwhile.
func (c *Core) awaitEnd(now time.Duration, l *line, r *row) {
	switch wait := c.tooEarly(now, r.lane); {
	case wait > 0:
		l.queued = true
		c.delayed.push(now+wait, l)
	case l.inFlight == 0: // else it is looked at when what is in flight is answered
		l.rows, r.line = l.rows[1:], nil
		c.suspected(now, l, r)
		c.retire(l)
	}
}

// tooEarly is how long a new owner waits before it declares anything dead: the owner before it may have an
// event in flight still, and that could arrive after its death.
func (c *Core) tooEarly(now time.Duration, l *lane) time.Duration {
	if !l.crashed {
		return 0
	}
	return max(0, l.acquiredAt+c.config.Deadline-now)
}

// isNoted tells whether the database has this event noted. One that owners have died with stays there until it
// is settled, or was outlived as often, whatever else this one notes.
func (l *lane) isNoted(id outbox.ID) bool {
	if l.blamed != (outbox.ID{}) {
		return l.blamed == id
	}
	return l.noted == id
}

// isBlamed tells whether owners of the lane have died with this event in flight, and too few have spoken for it since.
func (r *row) isBlamed() bool { return r.lane.blamed == r.ID }

// notedFirst brings forward what is noted: should this relay die, it is what the next owner will blame.
func (c *Core) notedFirst() {
	c.runnable.bringForward(func(l *line) bool { r := l.next(); return r != nil && r.lane.noted == r.ID })
}

// comesLater tells whether something goes before this event that is perhaps not read yet. What owners have died with is
// sent first: either this relay dies of it as well, or it outlives it and speaks for it. In the usual order, whichever
// event a topic that hangs has in flight when relays are killed would be there at every death, and never outlived.
// While there is a suspect, nothing is sent until it is dead: a death with another event would speak for it.
func (c *Core) comesLater(now time.Duration, r *row) bool {
	return r.lane.noted != r.ID && slices.ContainsFunc(c.sorted, func(l *lane) bool {
		return c.awaits(now, l) && (l.suspect != outbox.ID{} || !r.isBlamed())
	})
}

// awaits tells whether a lane has a suspect that is not dead yet, or an event that owners have died with and that was
// not sent yet. Somebody else may have settled that event, so the wait has an end.
func (c *Core) awaits(now time.Duration, l *lane) bool {
	switch held := now - l.acquiredAt; {
	case l.draining:
		return false
	case l.suspect != outbox.ID{}:
		return held < 2*(c.config.Deadline+c.config.HeldPeriod)
	default:
		return l.blamed != outbox.ID{} && !l.faced && held < 2*c.config.HeldPeriod
	}
}

// forgetNote forgets the note of the event that was sent alone, as the database did.
func (l *lane) forgetNote() {
	if l.noted == l.blamed && l.outlived {
		l.deaths = max(0, l.deaths-1)
		if l.deaths == 0 {
			l.blamed = outbox.ID{}
		}
	}
	l.noted = outbox.ID{}
}

// isSuspect tells whether an event has been the noted one in so many crashes that it must be the cause.
func (l *lane) isSuspect(id outbox.ID) bool { return l.suspect == id && id != outbox.ID{} }

// calm tells whether whatever killed the owner before is behind. Either this relay has held the lane for so long that
// nothing in it can be the cause. Or it has got past where the one before was: the first ready events are settled, and
// of every held line that was due the first event has been tried. That is all, because a fleet that is being killed for
// other reasons must not be taken for one that an event kills: what waits behind a held event may be long, and a topic
// that is paused holds the floor for as long as it is down; nobody dies of what is not sent. Types that are not known
// here cannot be tried.
func (c *Core) calm(now time.Duration, l *lane) bool {
	if !l.opened || now-l.acquiredAt >= 2*c.config.Lease && !c.awaitsTurn(now, l) {
		return l.opened
	}
	if !c.isPast(l) || c.blocksUnknown(l) || c.isUnread(l) {
		return false
	}
	for key, h := range l.holds {
		if key.topic == "" || !h.tried && !c.routeOf(key.topic).paused && c.isBusyWith(now, h) {
			return false
		}
	}
	return true
}

// isPast tells whether this relay has got past where the owner before was in a lane. Where nothing is beyond that, it
// is there: all is settled, nothing is held, and no number was drawn since. Nobody can wait for more: copies do not go
// while care is taken, and a lane that changes hands often would be taken care of for as long as no event comes.
func (c *Core) isPast(l *lane) bool {
	reached := l.reached()
	return reached > l.began ||
		c.fence.known && c.fence.seenAt >= l.acquiredAt && reached >= c.fence.last && len(l.holds)+len(l.rows) == 0
}

// isBusyWith tells whether something of a held line is about to be sent.
func (c *Core) isBusyWith(now time.Duration, h *hold) bool {
	return h.due <= now || h.asking || h.changes > 0 || c.lines[h.key] != nil
}

// deathsForgotten is after how long deaths do not count any more, whatever is in the lane: relays that die less often
// than that do not keep dying.
const deathsForgotten = time.Hour

// proven tells whether the lane is calm, and what killed owners before cannot be of a type that is not known here. As
// long as it can be, their deaths go on counting: the next owner may know the type, and die of it as well.
func (c *Core) proven(now time.Duration, l *lane) bool {
	return c.calm(now, l) && (!c.hasUnknown(l) || now-l.acquiredAt >= deathsForgotten)
}

// reviewCare ends the one-at-a-time mode of lanes that are calm.
func (c *Core) reviewCare(now time.Duration) {
	for _, l := range c.sorted {
		l.careful = l.careful && (c.awaits(now, l) || !c.calm(now, l))
	}
	c.endCare()
}

// endCare ends the one-at-a-time mode when no lane needs it, and no noted event is in flight or about to be settled:
// whoever died of another one beside it would blame the noted one.
func (c *Core) endCare() {
	c.careful = c.careful && slices.ContainsFunc(c.sorted, func(l *lane) bool {
		return l.careful || l.noted != outbox.ID{} && (l.inFlight > 0 || c.soonWritten(l) > 0)
	})
}
