package core

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// fate is what became of an event, to be written down.
type fate struct {
	row         *row
	key         lineKey
	hold        *hold
	failed      int // how often it could not be settled alone
	appliedThen int // settles that the database had taken when it first failed: more since then show that it is the event
	decidedAt   time.Duration
	state       State
	attempts    int32
	delay       time.Duration
	detail      string
	reason      string
	topic       string
	untried     bool // nobody has looked at the event: whoever is suspected stays so
	unsure      bool // it was sent before, and no answer came
	unchanged   bool // the database left the row as somebody else had made it
}

// settling is what waits to be written down. What is decided while statements are under way goes into the
// next one, so that groups form by themselves. A second statement beside the first is worth it when a group
// has formed already.
type settling struct {
	gates   [2]gate
	pending []fate
	most    int    // of the next statement: less after a failure, because one event may be what the database refuses
	refused []fate // those are tried alone, now and then, and hold up nobody else
	alone   gate
	applied int
}

// The size of a statement: at most, and from which on it is not kept back while another is under way.
const (
	mostOfASettle    = 2000
	enoughForASettle = 500
	triesOfALeaving  = 3 // of an event that cannot be settled, before its lane is given away all the same
)

// decide queues what became of an event. If its line is held, the hold waits for the acknowledgement.
func (c *Core) decide(f fate) {
	if h := f.row.lane.holds[f.key]; h != nil {
		f.hold = h
		h.changes++
		h.stale = true
		if f.key.topic != "" && f.state != Published {
			h.addType(f.row.Type)
		}
	}
	f.row.decided, f.decidedAt = true, c.now
	f.row.lane.unwritten++
	c.settling.pending = append(c.settling.pending, f)
}

// settleOutcomes writes down what is decided.
func (c *Core) settleOutcomes(now time.Duration) {
	s := &c.settling
	if c.members.release.busy { // it waits for the settles that run: new ones would keep it waiting
		return
	}
	for i := range s.gates {
		if len(s.pending) == 0 || i > 0 && len(s.pending) < enoughForASettle {
			return
		}
		if !c.shut(&s.gates[i], now) {
			n := min(len(s.pending), s.most)
			sent := append([]fate(nil), s.pending[:n]...)
			s.pending = slices.Delete(s.pending, 0, n)
			c.settleSome(&s.gates[i], sent)
		}
	}
}

// soonWritten counts what is decided about a lane and will be written down soon.
func (c *Core) soonWritten(l *lane) int {
	n := l.unwritten
	for i := range c.settling.refused {
		if c.settling.refused[i].row.lane == l {
			n--
		}
	}
	return n
}

// settleRefused tries one event again that could not be settled alone.
func (c *Core) settleRefused(now time.Duration) {
	s := &c.settling
	s.refused = slices.DeleteFunc(s.refused, func(f fate) bool {
		givenUp := f.row.lane.draining && f.failed >= triesOfALeaving && s.applied > f.appliedThen
		if givenUp { // the next owner meets it again
			f.row.lane.unwritten--
		}
		return f.row.lane.lost || givenUp
	})
	if len(s.refused) == 0 || c.shut(&s.alone, now) {
		return
	}
	sent := []fate{s.refused[0]}
	s.refused = slices.Delete(s.refused, 0, 1)
	c.settleSome(&s.alone, sent)
}

// settleSome writes some down, in one statement.
func (c *Core) settleSome(g *gate, sent []fate) {
	s := &c.settling
	request := c.settleRequest(sent)
	begin(c, OpSettle, g,
		func(ctx context.Context, store Store) (SettleAnswer, error) { return store.Settle(ctx, request) },
		func(now time.Duration, answer SettleAnswer, err error) {
			switch {
			case err != nil: // it may have been applied; applied twice it is applied once
				c.observeSettles(sent, Uncertain, time.Time{})
				for i := range sent {
					sent[i].unsure = true
				}
				if s.most = max(1, len(sent)/2); len(sent) == 1 {
					if sent[0].failed++; sent[0].failed == 1 {
						sent[0].appliedThen = s.applied
					}
					s.refused = append(s.refused, sent...)
				} else {
					c.settleAgain(sent)
				}
			case !answer.Applied:
				c.counts.StaleSettles++
				c.observeSettles(sent, Stale, time.Time{})
				c.loseStale(sent, answer.Held)
				c.settleAgain(sent)
			default:
				leaveUnchanged(sent, answer.Unchanged)
				c.observeSettles(sent, Applied, answer.At)
				s.most = min(2*s.most, mostOfASettle)
				s.applied++
				for i := range sent {
					if !sent[i].row.lane.lost {
						c.settled(now, &sent[i])
					}
				}
			}
		})
}

// leaveUnchanged marks the fates that came too late. One that was sent before may have been applied then, and is not
// among them.
func leaveUnchanged(sent []fate, ids []outbox.ID) {
	for i := range sent {
		sent[i].unchanged = !sent[i].unsure && slices.Contains(ids, sent[i].row.ID)
	}
}

// settleAgain puts what was not settled back, in front, except for lanes that are lost.
func (c *Core) settleAgain(sent []fate) {
	again := make([]fate, 0, len(sent)+len(c.settling.pending))
	for _, f := range sent {
		if !f.row.lane.lost {
			again = append(again, f)
		}
	}
	c.settling.pending = append(again, c.settling.pending...)
}

// loseStale gives up the lanes of a settle that are not held any more.
func (c *Core) loseStale(sent []fate, held []int16) {
	for i := range sent {
		if l := sent[i].row.lane; !slices.Contains(held, l.number) {
			c.lose(l, "a settle found the lane taken")
		}
	}
}

// settleRequest puts fates into one request.
func (c *Core) settleRequest(fates []fate) *Settle {
	request := &Settle{Owner: c.members.owner, Published: make([]Found, 0, len(fates))}
	seen := map[*lane]bool{}
	for i := range fates {
		f := &fates[i]
		if l := f.row.lane; !seen[l] {
			seen[l] = true
			request.Lanes = append(request.Lanes, l.number)
		}
		if f.row.lane.isNoted(f.row.ID) && !f.untried {
			request.ClearNotes = append(request.ClearNotes, f.row.lane.number)
		}
		switch f.state {
		case Published:
			request.Published = append(request.Published, f.row.Found())
		case Retrying:
			request.Retry = append(request.Retry, Retry{
				Found: f.row.Found(), Attempts: f.attempts, Delay: f.delay, Error: f.detail, Tried: f.tried(),
			})
		case Waiting:
			request.Wait = append(request.Wait, f.row.Found())
		case Parked:
			request.Park = append(request.Park, Park{Found: f.row.Found(), Error: f.detail})
		case DeadBlocking, Dead:
			request.Dead = append(request.Dead, Death{
				Found: f.row.Found(), Blocking: f.state == DeadBlocking, Attempts: f.attempts, Topic: f.topic,
				Reason: f.reason, Detail: f.detail, Tried: f.tried(),
			})
		case Ready, Discarded: // nobody decides so
		}
	}
	return request
}

// tried is the publish that failed, if the event was sent at all.
func (f *fate) tried() Tried {
	outcome := &f.row.outcome
	if outcome.Class == Acknowledged || outcome.Class == NotSent || outcome.Contract {
		return Tried{}
	}
	return Tried{Class: outcome.Class, Topic: f.key.topic}
}

// settled forgets an event whose fate is written down, or that is not any more what it was when that was decided: then
// its line is looked at again. While a read runs that began before, the row is remembered: that read may still show it
// as ready.
func (c *Core) settled(now time.Duration, f *fate) {
	r := f.row
	r.done = true
	delete(r.lane.sent, r.Seq)
	if r.lane.noted == r.ID {
		r.lane.noted = outbox.ID{}
		c.endCare()
	}
	if r.lane.blamed == r.ID && !f.untried {
		r.lane.blamed = outbox.ID{}
	}
	if f.unchanged && f.reason == reasonCrashSuspect { // nobody has sent it since, nor asked for that
		r.lane.suspect = r.ID
	}
	c.weigh(r, -1)
	if r.lane.most > 0 { // it may be read again
		c.reader.wake(now, c.config.MinPoll)
	}
	r.lane.unwritten--
	if !r.held {
		r.lane.unsettled--
	}
	r.Payload, r.Headers = nil, nil
	if len(c.reader.running) == 0 {
		r.lane.forget(r)
	} else {
		c.reader.settled = append(c.reader.settled, settledRow{row: r, reads: c.reader.number})
	}
	c.count(f)
	if h := f.hold; h != nil && h.lane.holds[h.key] == h {
		h.changes--
		switch {
		case f.unchanged: // not at once: whatever keeps the row as it is, it may do so again
			h.due = now + c.config.HeldPeriod
		case f.state == Published:
			h.due = min(h.due, now)
		}
		c.reschedule(now, h)
	}
}

func (c *Core) count(f *fate) {
	if f.unchanged {
		return
	}
	switch f.state {
	case Published:
		c.counts.Published++
	case Retrying:
		c.counts.Retried++
	case Parked:
		c.counts.Parked++
	case Waiting:
		c.counts.Waited++
	case DeadBlocking, Dead:
		c.counts.Dead++
	case Ready, Discarded:
	}
}

// observeSettles tells what became of a settle that the database took at this time; zero: it did not say.
func (c *Core) observeSettles(fates []fate, result Result, at time.Time) {
	for i := range fates {
		f := &fates[i]
		step := Step{
			Do: DidSettle, Lane: f.row.Lane, Token: f.row.lane.token, Event: f.row.ID, Type: f.row.Type,
			Aggregate: f.row.Aggregate, Topic: f.key.topic,
			State: f.state, Result: result, Attempt: int(f.attempts), Detail: f.reason, Took: c.now - f.decidedAt,
		}
		if f.unchanged {
			step.Result = Unchanged
		}
		if f.state == Published && !at.IsZero() {
			step.Lag = max(0, at.Sub(f.row.CreatedAt))
		}
		c.config.Observe(step)
	}
}
