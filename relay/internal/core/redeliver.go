package core

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Published events are delivered again when somebody asks for it, each by a request of its own. Whoever holds the lane
// takes the open requests, sends a copy for each, and writes down how that ended. The event itself does not change.
//
// Copies come after everything else: they use few of the places, and none while an event waits for one. Within one
// action the copies of an aggregate are sent in the order of the events, one at a time. Of each topic a lane has one
// page of requests in memory at most, and takes the next one when all of it is written down: whatever is open and not
// in memory comes behind it. A topic whose copies wait, for its limit or its breaker, so holds up those of no other.

// redelivery is what is known about requests.
type redelivery struct {
	requested bool // there are open requests, as the last look at the fleet found
	take      gate
	takeAt    time.Duration
	// What was taken without an answer is looked for also where nothing may go: often until doubtful, and then at lookAt.
	doubtful, lookAt time.Duration
	settle           gate
	runnable         queue[*requestLine]
	delayed          timers[*requestLine]
	inFlight         int
	flying           map[lineKey][]*line // copies in flight, and the events' lines that wait for them
	ended            []requestEnd
	looked           time.Duration // at what has been in hands for long
	forgotten        bool          // a topic was, and is written down still
	types            map[string]*copyHealth
}

// requestKey names the requests that are kept in order: those of one action, aggregate and topic.
type requestKey struct {
	lineKey
	action outbox.ID
}

// requestLine is a queue of requests of one lane. The copy of the first may be in flight.
type requestLine struct {
	key       requestKey
	lane      *lane
	route     *route
	requests  []*request
	flying    bool
	ending    bool // the first has failed: until that is written down, a crash could bring it back behind the others
	queued    bool // is in runnable or delayed
	notBefore time.Duration
}

// request is one in memory.
type request struct {
	Request
	lane      *lane
	page      *page
	line      *requestLine
	takenAt   time.Duration
	failures  int // of its copy, since it was taken
	charged   int // in all, by its own fault
	startedAt time.Duration
}

// requestEnd is how a request ends for this relay, to be written down.
type requestEnd struct {
	*request
	end    RequestState
	detail string
}

// The sizes of redelivery.
const (
	requestsOfALane = 32
	looksAtRequests = 1000
	shareOfCopies   = 4 // copies have this part of all publishes at a time
	triesOfACopy    = 5
	// TakesBeforeAlone is how often relays have taken a request that did not come back with it, from which on nothing
	// else is taken beside it, in whatever lane: what it may have killed them with must not be counted against others.
	TakesBeforeAlone = 3
	takesOfARequest  = 6 // by relays of which none has come back with it
	// longestInHands is for how long a request is kept that cannot be sent: whoever cancels it waits for that.
	longestInHands = 10 * time.Second
)

// redeliver goes on with requests.
func (c *Core) redeliver(now time.Duration) {
	c.returnOld(now)
	c.takeRequests(now)
	c.sendCopies(now)
	c.settleRequests(now)
}

// runRequests makes a line runnable if it has a copy to send, and forgets it if it has nothing.
func (c *Core) runRequests(l *requestLine) {
	switch {
	case len(l.requests) == 0:
		l.lane.requestLines = slices.DeleteFunc(l.lane.requestLines, func(other *requestLine) bool { return other == l })
	case !l.queued && !l.flying && !l.ending:
		l.queued = true
		c.redelivery.runnable.push(l)
	}
}

// sendCopies sends copies while nothing else waits for a place.
func (c *Core) sendCopies(now time.Duration) {
	d := &c.redelivery
	for d.delayed.next() <= now {
		d.runnable.push(d.delayed.pop())
	}
	most := max(1, c.config.Concurrency/shareOfCopies)
	for d.runnable.len() > 0 && d.inFlight < most && c.publishing < c.config.Concurrency && c.runnable.len() == 0 {
		l := d.runnable.pop()
		l.queued = false
		if len(l.requests) > 0 && !l.flying && !l.ending {
			c.trySend(now, l)
		}
		c.runRequestsLater(now, l)
	}
	c.wakeAt(d.delayed.next())
}

// runRequestsLater looks at a line again that could not go on now, and forgets one that is done.
func (c *Core) runRequestsLater(now time.Duration, l *requestLine) {
	if len(l.requests) == 0 || l.queued || l.flying || l.ending {
		c.runRequests(l)
		return
	}
	l.queued = true
	c.redelivery.delayed.push(max(l.notBefore, now+firstPause), l)
}

// trySend sends the first copy of a line, if it may go now. What may not go for long is given back: others of its lane
// need not wait for it.
func (c *Core) trySend(now time.Duration, l *requestLine) {
	r := l.requests[0]
	switch {
	case l.route.paused || c.pausedTopic(r.Topic) != nil || c.pausedType(r.Event.Type) || c.careful || c.stopping:
		c.returnRequests(l)
	case now < l.notBefore, !c.mayPublish(r.lane, now):
	case l.route.inFlight >= c.slots(now, l.route) || l.route.waiting.len() > 0 || !l.route.mayBegin():
	case c.isSending(l.key.lineKey): // brokers keep one order for all of it
	default:
		c.startCopy(now, l, r)
	}
}

// returnOld gives back what could not be sent for long, because its topic is limited or events have all places: whoever
// cancels it waits for that. A copy that has failed stays, alone: how often it did is known here only.
func (c *Core) returnOld(now time.Duration) {
	d := &c.redelivery
	if now < d.looked+c.config.HeldPeriod {
		return
	}
	d.looked = now
	for _, l := range c.sorted {
		for _, line := range slices.Clone(l.requestLines) {
			if len(line.requests) == 0 || now-line.requests[0].takenAt <= longestInHands {
				continue
			}
			for _, r := range slices.Clone(line.requests) {
				if r != line.requests[0] || !line.flying && !line.ending && r.failures == 0 {
					c.endRequest(r, RequestOpen, "")
				}
			}
			l.pageOf(line.route).takeAt = now + c.config.HeldPeriod // meanwhile it can be canceled
			c.runRequests(line)
		}
		if len(l.requests) > 0 {
			c.wakeAt(now + c.config.HeldPeriod)
		}
	}
}

// isSending tells whether something of an aggregate and topic is in flight, be it an event or a copy.
func (c *Core) isSending(key lineKey) bool {
	_, flies := c.redelivery.flying[key]
	return flies || c.lines[key] != nil && c.lines[key].inFlight > 0
}

func (c *Core) startCopy(now time.Duration, l *requestLine, r *request) {
	l.flying, r.startedAt = true, now
	c.redelivery.inFlight++
	if c.redelivery.flying == nil {
		c.redelivery.flying = map[lineKey][]*line{}
	}
	c.redelivery.flying[l.key.lineKey] = nil
	if l.route.inFlight == 0 {
		l.route.answeredAt = now
	}
	l.route.inFlight++
	l.route.begins()
	c.publishing++
	r.lane.inFlight++
	publish := &Publish{
		Event: &r.Event, Topic: r.Topic, Redelivered: true, Request: r.ID, Attempt: r.failures + 1, First: true,
		DecidedAt: now, request: r,
	}
	c.config.Observe(publish.step(DidPublish, Outcome{}))
	c.actions.Publish = append(c.actions.Publish, publish)
}

// awaitCopy keeps a line of events back while a copy of the same aggregate and topic is in flight: brokers keep one
// order for both, and a failure of the one would be taken for one of the other.
func (c *Core) awaitCopy(l *line) (waits bool) {
	behind, flies := c.redelivery.flying[l.key]
	if flies {
		l.queued = true
		c.redelivery.flying[l.key] = append(behind, l)
	}
	return flies
}

// copyAnswered takes in what became of a copy.
func (c *Core) copyAnswered(now time.Duration, publish *Publish, outcome Outcome) {
	r := publish.request
	l := r.line
	l.flying = false
	c.redelivery.inFlight--
	l.route.inFlight--
	c.publishing--
	r.lane.inFlight--
	if outcome.Class != Unknown && outcome.Class != NotSent {
		l.route.answeredAt = now
	}
	did := DidRefuse
	if outcome.Class == Acknowledged {
		did = DidAck
		c.carried(now, l.route, r.startedAt)
	}
	c.config.Observe(publish.answered(now, did, outcome))
	for _, behind := range c.redelivery.flying[l.key.lineKey] {
		behind.queued = false
		c.run(behind)
	}
	delete(c.redelivery.flying, l.key.lineKey)
	if !r.lane.lost { // else its next owner sends it again
		c.copyEnded(now, l, r, outcome)
		c.runRequestsLater(now, l)
	}
}

// copyEnded decides what follows from an answer. Whoever asked for the copy sees why it failed. As with events, what
// the topic is to blame for fails no request: it is tried again, and given back when the topic is paused. Nor does a
// contract that most copies of the type break.
func (c *Core) copyEnded(now time.Duration, l *requestLine, r *request, outcome Outcome) {
	r.failures++
	if ofTopic := c.blameTopic(now, l, r, outcome); !ofTopic && outcome.Class.isCharged() {
		r.charged++
	}
	switch {
	case outcome.Class == Acknowledged:
		c.endRequest(r, RequestDelivered, "")
	case c.copyBreaksLikeMost(now, r, outcome):
		c.returnLine(l, r, outcome.Detail)
	case outcome.Class == Terminal, r.charged >= triesOfACopy:
		c.endRequest(r, RequestFailed, outcome.Detail)
	case l.route.paused || r.lane.draining || c.stopping, r.failures >= triesOfACopy:
		c.returnLine(l, r, outcome.Detail)
	default:
		l.notBefore = now + c.jitter(grow(c.config.BaseDelay, r.failures, longestPause))
	}
}

// isCharged tells whether a failure counts against what failed, unless its topic is to blame.
func (class Class) isCharged() bool { return class == Rejected || class == Unknown }

// returnLine gives back the first of a line, with why it could not be sent, and all behind it.
func (c *Core) returnLine(l *requestLine, first *request, detail string) {
	c.endRequest(first, RequestOpen, detail)
	c.returnRequests(l)
}

// blameTopic tells the topic what its answer says about it, and whether it is to blame.
func (c *Core) blameTopic(now time.Duration, l *requestLine, r *request, outcome Outcome) (blamed bool) {
	sent := &row{Event: r.Event, outcome: outcome, startedAt: r.startedAt}
	switch outcome.Class {
	case RouteFault, Unknown:
		blamed = !l.route.carriedAfter(sent)
	case Rejected:
		l.route.reject(now, l.key.Aggregate)
		if l.route.rejectsAll() {
			if now-l.route.rejectedSince > rejectsBeforePause {
				c.refuse(now, l.route, sent)
			}
			return true
		}
		c.answered(now, l.route)
	case Terminal:
		if !outcome.Contract && !l.route.rejectsAll() {
			c.answered(now, l.route)
		}
	case Acknowledged, NotSent:
	}
	if blamed {
		c.refuse(now, l.route, sent)
	}
	return blamed
}

// returnRequests gives back what a line has and is not in flight.
func (c *Core) returnRequests(l *requestLine) {
	for _, r := range slices.Clone(l.requests) {
		if !l.flying && !l.ending || r != l.requests[0] {
			c.endRequest(r, RequestOpen, "")
		}
	}
}

// endRequest takes a request out of its line and has its end written down.
func (c *Core) endRequest(r *request, end RequestState, detail string) {
	if r.line != nil && end == RequestFailed {
		r.line.ending = true
	} else {
		r.leaveLine()
	}
	r.lane.unwritten++
	c.redelivery.ended = append(c.redelivery.ended, requestEnd{request: r, end: end, detail: detail})
}

// leaveLine takes a request out of its line, if it is in one.
func (r *request) leaveLine() {
	if r.line != nil {
		r.line.requests = slices.DeleteFunc(r.line.requests, func(other *request) bool { return other == r })
		r.line = nil
	}
}

// settleRequests writes down how requests ended. They have a statement of their own: it is none of the events'
// business.
func (c *Core) settleRequests(now time.Duration) {
	d := &c.redelivery
	if len(d.ended) == 0 || c.members.release.busy || c.shut(&d.settle, now) {
		return
	}
	sent := d.ended
	d.ended = nil
	settle := &SettleRequests{Owner: c.members.owner}
	for _, e := range sent {
		if !slices.Contains(settle.Lanes, e.lane.number) {
			settle.Lanes = append(settle.Lanes, e.lane.number)
		}
		attempts := e.charged
		if e.end != RequestOpen {
			attempts = max(attempts, e.failures)
		}
		settle.Ends = append(settle.Ends, RequestEnd{
			ID: e.ID, Version: e.Version, Lane: e.lane.number, State: e.end, Attempts: int32(attempts), Error: e.detail,
		})
	}
	begin(c, OpSettleRequests, &d.settle,
		func(ctx context.Context, store Store) (SettleAnswer, error) { return store.SettleRequests(ctx, settle) },
		func(now time.Duration, answer SettleAnswer, err error) {
			switch {
			case err != nil:
				c.observeRequests(sent, Uncertain)
			case !answer.Applied:
				c.observeRequests(sent, Stale)
				for _, e := range sent {
					if !slices.Contains(answer.Held, e.lane.number) {
						c.lose(e.lane, "a settle found the lane taken")
					}
				}
			default:
				c.observeRequests(sent, Applied)
				c.requestsSettled(now, sent)
				return
			}
			d.ended = append(slices.DeleteFunc(sent, func(e requestEnd) bool { return e.lane.lost }), d.ended...)
		})
}

// requestsSettled forgets requests whose ends are written down.
func (c *Core) requestsSettled(now time.Duration, sent []requestEnd) {
	for _, e := range sent {
		if e.lane.lost {
			continue
		}
		if l := e.line; l != nil {
			l.ending = false
			e.leaveLine()
			c.runRequests(l)
		}
		e.lane.unwritten--
		c.leavePage(now, e)
		if e.end == RequestDelivered {
			c.counts.Redelivered++
		}
	}
}

func (c *Core) observeRequests(ends []requestEnd, result Result) {
	for _, e := range ends {
		c.config.Observe(Step{
			Do: DidSettleRequest, Lane: e.lane.number, Token: e.lane.token, Event: e.Event.ID, Type: e.Event.Type,
			Aggregate: e.Event.Aggregate, Topic: e.Topic, Request: e.ID, Ended: e.end, Result: result, Detail: e.detail,
		})
	}
}

// forgetTopics forgets topics that only copies went to, when nothing is requested any more. One that does not exist
// would stand here for good as a topic that fails.
func (c *Core) forgetTopics() {
	if c.redelivery.requested {
		return
	}
	c.ordered = slices.DeleteFunc(c.ordered, func(r *route) bool {
		if !r.onlyCopies() || r.limit != nil || r.inFlight > 0 || r.copies > 0 {
			return false
		}
		delete(c.routes, r.topic)
		c.redelivery.forgotten = true
		c.config.Observe(Step{Do: DidForget, Topic: r.topic})
		return true
	})
}

// drainRequests gives back what a lane has in memory and not in flight.
func (c *Core) drainRequests(l *lane) {
	for _, line := range slices.Clone(l.requestLines) {
		c.returnRequests(line)
		c.runRequests(line)
	}
}

// loseRequests forgets what a lost lane has in memory. What is in flight cannot be called back.
func (c *Core) loseRequests(l *lane) {
	c.unsettled -= len(l.requests)
	c.bytes -= l.requestBytes
	for _, line := range l.requestLines {
		line.requests = nil
	}
	for _, p := range l.pages {
		p.route.copies -= p.requests
	}
	l.requestBytes, l.requestLines, l.pages, l.survived, l.suspects = 0, nil, nil, 0, 0
	clear(l.requests)
	c.redelivery.ended = slices.DeleteFunc(c.redelivery.ended, func(e requestEnd) bool { return e.lane == l })
}
