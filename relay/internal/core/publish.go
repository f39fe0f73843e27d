package core

import (
	"time"
)

// publishNext starts publishes, aggregate by aggregate in turn, as many as may be in flight.
func (c *Core) publishNext(now time.Duration) {
	for c.delayed.next() <= now {
		c.runnable.push(c.delayed.pop())
	}
	c.wakeAt(c.delayed.next())
	for _, r := range c.ordered {
		if r.waiting.len() > 0 {
			c.release(now, r)
		}
	}
	for c.runnable.len() > 0 && c.publishing < c.limit() {
		if c.careful {
			c.notedFirst()
		}
		l := c.runnable.pop()
		l.queued = false
		if l.inFlight < min(len(l.rows), l.route.depth) && !l.failed {
			c.tryPublish(now, l)
		}
	}
}

// limit is how many publishes may be in flight.
func (c *Core) limit() int {
	if !c.careful && !c.noting && len(c.unnote) == 0 {
		return c.config.Concurrency
	}
	if c.noting || len(c.unnote) > 0 {
		return 0
	}
	return 1
}

// tryPublish publishes the next event of a line, or sets the line aside until it may.
func (c *Core) tryPublish(now time.Duration, l *line) {
	r := l.rows[l.inFlight]
	switch {
	case c.pausedType(r.Type):
		c.setAside(l)
	case c.awaitCopy(l):
	case now < l.notBefore:
		l.queued = true
		c.delayed.push(l.notBefore, l)
	case r.lane.isSuspect(r.ID):
		c.awaitEnd(now, l, r)
	case l.route.probing && l.route.tried[r.ID] && !r.deferred:
		r.deferred, l.queued = true, true
		c.delayed.push(now+firstPause, l)
	case !c.mayPublish(r.lane, now):
		l.queued = true
		c.stalled = append(c.stalled, l)
	case l.route.inFlight >= c.slots(now, l.route) || !l.route.mayBegin():
		l.queued = true
		l.route.waiting.push(l)
	case c.careful && c.comesLater(now, r):
		l.queued = true
		c.delayed.push(now+firstPause, l)
	// the settle clears the note, so it comes first
	case c.careful && r.lane.noted != r.ID && (c.soonWritten(r.lane) > 0 || c.noteStands()):
		l.queued = true
		c.delayed.push(now+c.config.MinPoll, l)
	case c.careful && r.lane.noted != r.ID:
		c.noteFirst(l, r)
	default:
		c.startPublish(now, l, r)
	}
}

func (c *Core) startPublish(now time.Duration, l *line, r *row) {
	redelivered := r.lane.sent[r.Seq] || r.State != Ready || r.Seq <= r.lane.inherited ||
		r.lane.crashed && r.lane.inherited == 0
	r.lane.sent[r.Seq], r.startedAt = true, now
	r.lane.faced = r.lane.faced || r.isBlamed()
	l.inFlight++
	if l.route.inFlight == 0 {
		l.route.answeredAt = now
	}
	l.route.inFlight++
	l.route.begins()
	c.publishing++
	r.lane.inFlight++
	publish := &Publish{
		Event: &r.Event, Topic: l.key.topic, Redelivered: redelivered, Attempt: int(oneMore(r.Attempts)),
		First: l.inFlight == 1, DecidedAt: now, row: r,
	}
	c.config.Observe(publish.step(DidPublish, Outcome{}))
	c.actions.Publish = append(c.actions.Publish, publish)
	c.run(l)
}

// Published tells what a publish came to.
func (c *Core) Published(now time.Duration, publish *Publish, outcome Outcome) {
	c.now = now
	if publish.request != nil {
		c.copyAnswered(now, publish, outcome)
		return
	}
	r := publish.row
	l := r.line
	r.answered, r.outcome = true, outcome
	route := l.route
	route.inFlight--
	if outcome.Class != Unknown && outcome.Class != NotSent { // those are no answers of the broker
		route.answeredAt = now
	}
	c.publishing--
	r.lane.inFlight--
	if outcome.Class == Acknowledged {
		c.config.Observe(publish.answered(now, DidAck, outcome))
		c.carried(now, l.route, r.startedAt)
	} else {
		c.config.Observe(publish.answered(now, DidRefuse, outcome))
		l.failed = true // what is in flight behind it is answered first
	}
	key := l.key
	c.advance(now, l)
	if h := r.lane.holds[key]; h != nil {
		h.tried = true
		if outcome.Class == Acknowledged {
			h.failures = 0
		}
	}
	if r.lane.noted == r.ID && !r.decided && !r.lane.lost {
		r.lane.outlived = outcome.Class != NotSent
		c.unnote = append(c.unnote, r.lane)
	}
}

// step describes the publish for whoever observes.
func (p *Publish) step(did Do, outcome Outcome) Step {
	return Step{
		Do: did, Lane: p.Event.Lane, Token: p.lane().token, Request: p.Request, Event: p.Event.ID, Type: p.Event.Type,
		Aggregate: p.Event.Aggregate,
		Topic:     p.Topic, Attempt: p.Attempt, Redelivered: p.Redelivered, Class: outcome.Class, Contract: outcome.Contract,
		Detail: outcome.Detail,
	}
}

// answered is the step with the time that it took.
func (p *Publish) answered(now time.Duration, did Do, outcome Outcome) Step {
	step := p.step(did, outcome)
	if p.request != nil {
		step.Took = now - p.request.startedAt
	} else {
		step.Took = now - p.row.startedAt
	}
	return step
}

func (p *Publish) lane() *lane {
	if p.request != nil {
		return p.request.lane
	}
	return p.row.lane
}

// advance goes on with a line as far as it was answered, in order. What is behind a failure was failed by
// the broker too, and is sent again from the failed one on: so all of it must be answered first.
func (c *Core) advance(now time.Duration, l *line) {
	for l.inFlight > 0 && l.rows[0].answered {
		r := l.rows[0]
		if !r.lane.lost && r.outcome.Class != Acknowledged {
			for _, behind := range l.rows[1:l.inFlight] {
				if !behind.answered {
					return
				}
			}
			c.rewind(now, l)
			return
		}
		l.rows = l.rows[1:]
		l.inFlight--
		r.line = nil
		if !r.lane.lost {
			c.acknowledged(now, l, r)
		}
	}
	l.failed = l.failed && l.inFlight > 0
	c.run(l)
	c.retire(l)
}

// rewind takes a line's head, which failed, out of the line and puts what was in flight behind it back into
// the queue. An acknowledgement behind the failure is an acknowledgement all the same.
func (c *Core) rewind(now time.Duration, l *line) {
	head, behind, queued := l.rows[0], l.rows[1:l.inFlight], l.rows[l.inFlight:]
	l.rows, l.inFlight, l.failed = nil, 0, false
	head.line = nil
	for _, r := range behind {
		r.answered = false
		switch {
		case r.lane.lost:
			r.line = nil
		case r.outcome.Class == Acknowledged:
			r.line = nil
			c.acknowledged(now, l, r)
		default:
			l.rows = append(l.rows, r)
		}
	}
	l.rows = append(l.rows, queued...)
	c.failed(now, l, head)
	c.run(l)
	c.retire(l)
}

// acknowledged settles an event that the broker has.
func (c *Core) acknowledged(_ time.Duration, l *line, r *row) {
	c.typeOf(r.Type).record(false)
	c.decide(fate{row: r, key: l.key, state: Published})
}

// again puts a row back to the head of its line, after a pause.
func (c *Core) again(l *line, r *row, notBefore time.Duration) {
	r.answered, r.line = false, l
	l.rows = append([]*row{r}, l.rows...)
	l.notBefore = notBefore
	if r.lane.draining || c.stopping { // nobody waits for another try
		c.dropQueued(l, c.forget)
	}
}
