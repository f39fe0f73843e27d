package check

import "math"

// publish names one publish that has not been settled: who, under which lease, of what.
type publish struct {
	lease   leaseKey
	entry   uint32
	request int64
	topic   string // of a copy that does not go where its event went
}

// progress is how far such a publish has come.
type progress struct {
	started  int64  // At
	next     uint64 // when it began: a relay that stood still may have sent it at any time after that
	inFlight bool
	acked    bool
	unsure   bool // a settle failed, was stale or was not answered
	doubts   int  // publishes of the line that had ended in doubt when it began
}

// flight names what at most one publish may be in flight for.
type flight struct {
	lease leaseKey
	group uint32
	topic string
}

func (p *publish) flight(e *entry) flight { return flight{p.lease, e.group, p.topic} }

// cause is a reason for one duplicate of an event.
type cause struct {
	entry uint32
	next  uint64
}

// publishing is what relays said about publishes. Only those that are not settled take memory.
type publishing struct {
	seen             bool // some relay recorded its publishes
	open             map[publish]*progress
	inFlight         map[flight]int
	overlaps         []overlap
	causes           []cause
	doubts           map[flight]int // publishes that ended in doubt
	reportedFailures []reportedFailure
	again            []overlap // settles to published beyond an event's first
}

// overlap is a publish that began beside another; whether that was allowed is known at the end.
type overlap struct {
	entry uint32
	relay string
}

// reportedFailure is a publish that failed, as its relay reports, for a reason that is not the message. Whether the
// broker has it all the same is known at the end.
type reportedFailure struct {
	cause
	relay          string
	started, ended int64
	behind         bool // another one of its line ended in doubt meanwhile
}

// charge is an attempt that was counted for a class that may be charged.
type charge struct {
	entry   uint32
	started int64
	at      int64
	relay   string
}

func newPublishing() publishing {
	return publishing{open: map[publish]*progress{}, inFlight: map[flight]int{}, doubts: map[flight]int{}}
}

// eventStep folds what a relay did with one event.
func (c *Checker) eventStep(e *entry, s *Step) {
	if !s.valid() {
		c.malformedf("relay %q did something unknown with %s", s.Relay, e.id)
		return
	}
	what := publish{lease: s.lease(), entry: e.self, request: s.Request, topic: s.Topic}
	switch s.Do {
	case Publish:
		c.publishStarted(e, what, s)
	case Ack, PublishFailed:
		c.publishEnded(e, what, s)
	case Settle:
		c.settled(e, what, s)
	case Charge:
		c.charged(e, what, s)
	default: // about a lane
	}
}

// publishStarted opens a publish. One that is still open from before was not settled as published.
func (c *Checker) publishStarted(e *entry, what publish, s *Step) {
	p := &c.publishing
	p.seen = true
	if before := p.open[what]; before != nil {
		if before.inFlight {
			c.landed(what, e, before)
		}
		if before.acked && before.unsure {
			p.causes = append(p.causes, cause{e.self, before.next})
		}
	}
	f := what.flight(e)
	if p.inFlight[f] > 0 {
		p.overlaps = append(p.overlaps, overlap{e.self, s.Relay})
	}
	p.inFlight[f]++
	p.open[what] = &progress{started: s.At, next: s.Next, inFlight: true, doubts: p.doubts[f]}
}

// publishEnded folds the broker's answer, or its absence. A check before the publish may fail
// as well, so a PublishFailed without a Publish is fine; an Ack is not.
func (c *Checker) publishEnded(e *entry, what publish, s *Step) {
	p := &c.publishing
	at := p.open[what]
	if at == nil {
		if s.Do == Ack {
			c.malformedf("relay %q has an ack for %s, which it did not publish", s.Relay, e.id)
			return
		}
		at = &progress{next: s.Next}
		p.open[what] = at
	}
	was := at.inFlight
	if was {
		c.landed(what, e, at)
	}
	if s.Do == Ack {
		at.acked = true
		return
	}
	line := what.flight(e)
	switch {
	case s.Class == InDoubt:
		p.causes = append(p.causes, cause{e.self, at.next})
		p.doubts[line]++
	case was && (s.Class == OfTopic || s.Class == Shutdown):
		behind := s.Class == Shutdown && p.doubts[line] > at.doubts
		p.reportedFailures = append(p.reportedFailures, reportedFailure{
			cause: cause{e.self, at.next}, relay: s.Relay, started: at.started, ended: s.At, behind: behind,
		})
	}
	switch {
	case s.Request != 0:
	case s.Class.chargeable() && e.failures < math.MaxUint16:
		e.failures++
	case s.Class == Broken:
		c.deadRecord(e).broken++
	}
}

// landed takes a publish out of flight.
func (c *Checker) landed(what publish, e *entry, at *progress) {
	at.inFlight = false
	f := what.flight(e)
	if c.publishing.inFlight[f]--; c.publishing.inFlight[f] <= 0 {
		delete(c.publishing.inFlight, f)
	}
}

// settled folds what became of writing it down.
func (c *Checker) settled(e *entry, what publish, s *Step) {
	at := c.publishing.open[what]
	if s.Result != Applied && s.Result != Unchanged {
		if at != nil {
			at.unsure = true
		}
		return
	}
	if s.Result == Applied {
		c.fence(e, s)
	}
	if s.Result == Applied && at != nil && what.request != 0 {
		r := c.copied(what.request, e)
		r.sentLast = max(r.sentLast, at.next)
	}
	if at != nil && !at.inFlight { // unchanged: the relay has forgotten the event, and reads it anew
		if at.acked && at.unsure && s.To != Published {
			// What the broker has is not what was written down now: that settle was lost, and the row is as it was before.
			c.publishing.causes = append(c.publishing.causes, cause{e.self, at.next})
		}
		delete(c.publishing.open, what)
	}
	if s.To == Published && s.Request == 0 {
		if e.is(settledPublished) {
			c.publishing.again = append(c.publishing.again, overlap{e.self, s.Relay})
		}
		e.set(settledPublished)
	}
}

// charged folds an attempt that was counted. Whether its topic had failed is known at the end.
func (c *Checker) charged(e *entry, what publish, s *Step) {
	if !s.Class.chargeable() {
		c.chargedWronglyf(e, "was charged for a failure of class %s by relay %q", s.Class, s.Relay)
		return
	}
	if at := c.publishing.open[what]; at != nil && at.started != 0 && s.At != 0 {
		c.charges = append(c.charges, charge{entry: e.self, started: at.started, at: s.At, relay: s.Relay})
	}
}

// chargedWronglyf counts the event once, however often it was charged.
func (c *Checker) chargedWronglyf(e *entry, format string, args ...any) {
	if e.is(chargedWrongly) {
		return
	}
	e.set(chargedWrongly)
	c.countf(ChargedWrongly, e.id, format, args...)
}
