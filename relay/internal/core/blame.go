package core

import (
	"fmt"
	"math"
	"time"
)

// Reasons of dead letters that the core decides on.
const (
	reasonMaxAttempts  = "max_attempts"
	reasonUnknownType  = "unknown_event_type"
	reasonCrashSuspect = "crash_suspect"
)

// failed decides whose fault a failed publish was, and what follows. The row is in no line now.
func (c *Core) failed(now time.Duration, l *line, r *row) {
	outcome := r.outcome
	if outcome.Class != NotSent && !outcome.Contract { // in an outage as well: else only those that break it would count
		c.typeOf(r.Type).record(false)
	}
	switch outcome.Class {
	case Acknowledged, NotSent:
		if r.refused++; r.refused > failuresToPause { // whatever keeps it from being sent, it is not the event
			c.failedRoute(now, l, r)
			return
		}
		c.again(l, r, now+c.jitter(grow(c.config.MinPoll, r.refused, longestPause)))
	case Rejected:
		c.rejected(now, l, r)
	case Terminal:
		if outcome.Contract {
			if !outcome.OfRow && c.brokeLikeMost(r) {
				c.park(r, l.key, outcome.Detail)
				return
			}
		} else if !l.route.rejectsAll() {
			c.answered(now, l.route)
		}
		if wait := c.tooEarly(now, r.lane); wait > 0 {
			c.retry(now, l, r, r.Attempts, wait)
			return
		}
		attempts := r.Attempts
		if !outcome.Contract { // else nothing was sent: there was no attempt
			attempts = oneMore(attempts)
			c.observeCharge(r, attempts)
		}
		c.die(l.key, r, attempts, outcome.Reason, outcome.Detail)
	case RouteFault:
		if l.route.carriedAfter(r) {
			// The topic works for others: this one must not hold them up, whatever it is about it.
			c.retryUncharged(now, l, r, c.config.MaxDelay)
			return
		}
		c.failedRoute(now, l, r)
	case Unknown:
		if l.route.carriedAfter(r) && !l.route.failing(r) {
			c.charge(now, l, r)
			return
		}
		c.failedRoute(now, l, r)
	}
}

// rejected charges an event that the broker refused, unless the topic refuses all.
func (c *Core) rejected(now time.Duration, l *line, r *row) {
	if l.route.reject(now, l.key.Aggregate); !l.route.rejectsAll() {
		c.answered(now, l.route)
		c.charge(now, l, r)
		return
	}
	// It is held: were it at the head of its lane, with others like it, no probe would reach a good one behind them.
	c.retryUncharged(now, l, r, min(c.config.MaxDelay, longestRejected))
	if now-l.route.rejectedSince > rejectsBeforePause {
		c.refuse(now, l.route, r)
	}
}

// retryUncharged tries an event again, later each time, and charges nobody.
func (c *Core) retryUncharged(now time.Duration, l *line, r *row, longest time.Duration) {
	h := c.hold(r.lane, l.key, now)
	h.failures++
	c.retry(now, l, r, r.Attempts, c.jitter(grow(c.config.BaseDelay, h.failures, longest)))
}

// failedRoute counts a failure against the route. Nobody is charged.
func (c *Core) failedRoute(now time.Duration, l *line, r *row) {
	l.route.rejected = nil // it is down, and not what it was before
	r.refused++
	c.again(l, r, now+c.jitter(grow(c.config.BaseDelay/4, r.refused, longestPause)))
	c.refuse(now, l.route, r)
}

// charge counts an attempt against the event, which is dead when it has had them all.
func (c *Core) charge(now time.Duration, l *line, r *row) {
	limit := c.config.MaxAttempts
	if route, _ := c.config.Routes.Route(r.Type); route.MaxAttempts > 0 {
		limit = route.MaxAttempts
	}
	attempts := oneMore(r.Attempts)
	if int(attempts) >= limit {
		if wait := c.tooEarly(now, r.lane); wait > 0 {
			c.retry(now, l, r, r.Attempts, wait)
			return
		}
	}
	c.observeCharge(r, attempts)
	if int(attempts) >= limit {
		c.die(l.key, r, attempts, reasonMaxAttempts, r.outcome.Detail)
		return
	}
	c.retry(now, l, r, attempts, c.jitter(grow(c.config.BaseDelay, int(attempts), c.config.MaxDelay)))
}

// oneMore counts an attempt. What somebody wrote into the column by hand must neither overflow nor last for ever.
func oneMore(attempts int32) int32 {
	return min(max(attempts, 0), math.MaxInt32-1) + 1
}

func (c *Core) observeCharge(r *row, attempts int32) {
	c.config.Observe(Step{
		Do: DidCharge, Lane: r.Lane, Token: r.lane.token, Event: r.ID, Type: r.Type, Class: r.outcome.Class,
		Contract: r.outcome.Contract,
		Attempt:  int(attempts),
	})
}

// retry holds a row until it is due again. What comes behind it waits in the database.
func (c *Core) retry(now time.Duration, l *line, r *row, attempts int32, delay time.Duration) {
	c.hold(r.lane, l.key, now+delay)
	c.decide(fate{row: r, key: l.key, state: Retrying, attempts: attempts, delay: delay, detail: r.outcome.Detail})
	c.waitBehind(l)
}

// die ends a row. Also where later events may go on they wait until that is written down: else a crash
// could bring the dead one back behind them.
func (c *Core) die(key lineKey, r *row, attempts int32, reason, detail string) {
	route, _ := c.config.Routes.Route(r.Type) // nobody has asked for a block where the contract is not known
	state := Dead
	if route.Block {
		state = DeadBlocking
	}
	c.end(key, r, fate{state: state, attempts: attempts, reason: reason, detail: detail, topic: route.Topic})
}

// end writes down how a row ends.
func (c *Core) end(key lineKey, r *row, how fate) {
	how.row, how.key = r, key
	c.hold(r.lane, key, 0)
	c.decide(how)
	if l := c.lines[key]; l != nil {
		c.waitBehind(l)
	}
}

// park sets a row aside, also one that an operator or a new owner has released, or that was dead and is redriven: what
// is tried again and again is not seen as what nobody could publish, and no verb takes it.
func (c *Core) park(r *row, key lineKey, detail string) {
	c.hold(r.lane, key, 0)
	c.decide(fate{row: r, key: key, state: Parked, detail: detail})
	if l := c.lines[key]; l != nil {
		c.waitBehind(l)
	}
}

// parkStray sets a row aside that is in another lane than its aggregate: what comes behind it there would overtake
// it. Whoever wrote it brought a wrong lane, or the outbox was restored on a machine that counts lanes otherwise.
// Then it is every event, and none of them may die of it.
func (c *Core) parkStray(r *row, key lineKey) {
	if !r.lane.strayed {
		r.lane.strayed = true
		c.alarm(r.Lane, "events in this lane belong to another one: they are parked, see docs/operate/operations.md")
	}
	c.park(r, key, "the event is in another lane than its aggregate")
}

// notKnown parks a row of a type that this relay does not know. Its topic is not known either, so all
// later events of the aggregate wait behind it.
func (c *Core) notKnown(r *row) {
	key := lineKey{Aggregate: r.Aggregate}
	detail := "the registry of this relay has no such event type"
	if r.lane.holds[key] == nil && !c.isBlocked(r.lane, key) {
		c.hold(r.lane, key, never).first = r.Seq
	} else {
		known := c.hold(r.lane, key, never)
		known.first = min(known.first, r.Seq)
	}
	if c.config.UnknownTypeMaxAge < 0 && !c.spared(r.Type) {
		c.die(key, r, r.Attempts, reasonUnknownType, detail)
	} else {
		c.alarmUnknown(r)
		// Also if an operator has released it, or a relay that knew it: only what is parked has an age and is seen as that.
		// Whoever comes to know it releases it again.
		c.hold(r.lane, key, 0)
		c.decide(fate{row: r, key: key, state: Parked, detail: detail, untried: true})
	}
	c.hold(r.lane, key, never).addType(r.Type)
}

// mostUnknown is how many types that are not known are named.
const mostUnknown = 100

// alarmUnknown tells people of a type that is not known, once. Whoever may write events may make up names without end:
// after so many it says only that there are more.
func (c *Core) alarmUnknown(r *row) {
	if len(c.unknown) > mostUnknown || c.unknown[r.Type] {
		return
	}
	c.unknown[r.Type] = true
	if len(c.unknown) > mostUnknown {
		c.alarm(r.Lane, fmt.Sprintf("more than %d event types are not known here: others are parked without a word",
			mostUnknown))
		return
	}
	c.alarm(r.Lane, "event type "+r.Type+" is not known here: its events are parked")
}

// wait sets a ready row behind what is held of its line.
func (c *Core) wait(r *row, key lineKey) {
	if h := c.hold(r.lane, key, never); r.Seq < h.next {
		h.queued = false // it comes before what the last look found, and may go
	}
	c.decide(fate{row: r, key: key, state: Waiting})
}

// waitBehind empties a line that is held: ready rows are written down as waiting, held ones are that already.
func (c *Core) waitBehind(l *line) {
	c.dropQueued(l, func(r *row) {
		if r.held {
			c.forget(r)
		} else {
			c.decide(fate{row: r, key: l.key, state: Waiting})
		}
	})
}
