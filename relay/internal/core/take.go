package core

import (
	"context"
	"maps"
	"slices"
	"time"
)

// page is what a lane has in memory of the requests for one topic.
type page struct {
	route    *route
	requests int
	takeAt   time.Duration // no more of them before
}

// pageOf is the page of a lane for a topic.
func (l *lane) pageOf(r *route) *page {
	at := slices.IndexFunc(l.pages, func(p *page) bool { return p.route.topic == r.topic })
	if at < 0 {
		at = len(l.pages)
		l.pages = append(l.pages, &page{})
	}
	p := l.pages[at]
	p.route = r // one that was forgotten meanwhile is another now
	return p
}

// takeRequests takes open requests of every lane, for the topics for which it has none in memory. Of a take without an
// answer nobody knows what it took, or will take late: whoever cancels that would wait for as long as it may not go. So
// every take says what is in memory, and what else this relay has, as the database says, is given back. While nothing
// may be taken there are takes as well, which take nothing: many in the lease after one without an answer, and then one
// per lease, because it may be done at any time later.
func (c *Core) takeRequests(now time.Duration) {
	d := &c.redelivery
	if !d.requested || c.stopping || !c.fenceServes() || c.shut(&d.take, now) {
		return
	}
	if now < d.takeAt {
		c.wakeAt(d.takeAt)
		return
	}
	may := c.mayTake()
	if !may && now >= d.doubtful && now < d.lookAt {
		c.wakeAt(d.lookAt)
		return
	}
	requests, bytes := c.inMemory()
	take := c.requestsToTake(now)
	take.MaxBytes = min((c.config.MaxBytes-c.bytes)/2, c.config.MaxBytes/shareOfCopies-bytes)
	if !may {
		take.Limit = 0
	}
	crowded := requests > c.config.MaxInFlight/shareOfCopies
	var lanes []*lane
	for _, l := range c.sorted {
		switch {
		case !l.opened || l.draining || !c.mayPublish(l, now):
		case len(l.requests) > 0 && (crowded || l.survived > 0):
		case len(l.requests) > 0 && now < l.besideAt:
			c.wakeAt(l.besideAt)
		default:
			lanes, take.Lanes = append(lanes, l), append(take.Lanes, l.number)
			take.Busy = append(take.Busy, l.busyTopics(now)...)
			take.InMemory = slices.AppendSeq(take.InMemory, maps.Keys(l.requests))
		}
	}
	if len(lanes) == 0 {
		return
	}
	d.takeAt, d.lookAt = now+c.config.HeldPeriod, now+c.config.Lease
	begin(c, OpTakeRequests, &d.take,
		func(ctx context.Context, store Store) (RequestsAnswer, error) { return store.TakeRequests(ctx, take) },
		func(now time.Duration, answer RequestsAnswer, err error) {
			if err == nil && c.sees(lanes, answer.Seen) {
				c.requestsTaken(now, lanes, &answer)
			} else {
				d.doubtful = now + c.config.Lease
			}
		})
}

// mayTake tells whether requests may be taken at all.
func (c *Core) mayTake() bool {
	if c.careful || c.room() == 0 || c.standing(ScopeAll, "") != nil {
		return false
	}
	_, bytes := c.inMemory()
	return bytes < c.config.MaxBytes/shareOfCopies &&
		!slices.ContainsFunc(c.sorted, func(l *lane) bool { return l.suspects > 0 })
}

// inMemory is how many requests are, and how large. Where they leave too little room for events, none is taken if it is
// their size, and otherwise some by lanes that have none.
func (c *Core) inMemory() (requests, bytes int) {
	for _, l := range c.sorted {
		requests, bytes = requests+len(l.requests), bytes+l.requestBytes
	}
	return requests, bytes
}

// busyTopics are those of which a lane takes nothing now, and forgets the others.
func (l *lane) busyTopics(now time.Duration) (busy []LaneTopic) {
	l.pages = slices.DeleteFunc(l.pages, func(p *page) bool { return p.requests == 0 && p.takeAt <= now })
	for _, p := range l.pages {
		busy = append(busy, LaneTopic{Lane: l.number, Topic: p.route.topic, Types: p.route.types})
	}
	return busy
}

// requestsToTake says which requests may go now: those of types that are known here, and not to a topic or of a type
// that is paused, or whose next turn is far away. A request that names its topic does not wait for that of its type.
func (c *Core) requestsToTake(now time.Duration) TakeRequests {
	take := TakeRequests{Owner: c.members.owner, Limit: requestsOfALane, Look: looksAtRequests}
	for _, eventType := range c.config.Routes.Types() {
		if !c.pausedType(eventType) && !c.copiesWait(now, eventType) {
			take.Types = append(take.Types, eventType)
		}
	}
	for _, r := range c.ordered {
		if r.paused || !r.mayBeginWithin(c.config.HeldPeriod) {
			take.PausedTopics = append(take.PausedTopics, r.topic)
			take.PausedTypes = append(take.PausedTypes, r.types...)
		}
	}
	for _, pause := range c.pauses {
		if pause.Scope == ScopeTopic && !slices.Contains(take.PausedTopics, pause.Name) {
			take.PausedTopics = append(take.PausedTopics, pause.Name)
		}
	}
	return take
}

// requestsTaken takes an answer in. Another lane comes first each time, by chance: where a topic takes few, and pages
// are given back, the first would get all there is.
func (c *Core) requestsTaken(now time.Duration, lanes []*lane, answer *RequestsAnswer) {
	for _, l := range lanes {
		l.missing, l.besideAt = nil, now+c.config.HeldPeriod
	}
	for _, missing := range answer.Missing {
		if l := c.lanes[missing.Lane]; slices.Contains(lanes, l) {
			l.missing = append(l.missing, missing.Type)
		}
	}
	var with []*lane
	for i := range answer.Requests {
		if l := c.lanes[answer.Requests[i].Event.Lane]; slices.Contains(lanes, l) && !slices.Contains(with, l) {
			with = append(with, l)
		}
	}
	for i := len(with) - 1; i > 0; i-- {
		j := int(c.config.Random() % uint64(i+1))
		with[i], with[j] = with[j], with[i]
	}
	for _, l := range with {
		for i := range answer.Requests {
			if r := &answer.Requests[i]; r.Event.Lane == l.number {
				c.takeRequest(now, &request{Request: *r, lane: l, takenAt: now, charged: int(r.Attempts)})
			}
		}
	}
	for i := range answer.Forgotten {
		r := &answer.Forgotten[i]
		if l := c.lanes[r.Event.Lane]; slices.Contains(lanes, l) {
			forgotten := &request{Request: *r, lane: l, takenAt: now, charged: int(r.Attempts)}
			c.joinPage(forgotten) // until that is written down, none for its topic is taken
			c.endRequest(forgotten, RequestOpen, "")
		}
	}
}

// takeRequest takes one into memory, or ends it at once.
func (c *Core) takeRequest(now time.Duration, r *request) {
	_, known := c.config.Routes.Route(r.Event.Type)
	enough := c.joinPage(r)
	switch {
	case !known || r.lane.draining:
		c.endRequest(r, RequestOpen, "")
	case r.Taken > takesOfARequest:
		c.alarm(r.lane.number, "relays died whenever event "+r.Event.ID.String()+" was delivered again")
		c.endRequest(r, RequestFailed, "relays died whenever this event was delivered again")
	case enough: // what took its place in the answer comes next
		c.endRequest(r, RequestOpen, "")
		c.takeMore(now, r.lane)
	default:
		key := requestKey{lineKey{r.Event.Aggregate, r.Topic}, r.Action}
		at := slices.IndexFunc(r.lane.requestLines, func(l *requestLine) bool { return l.key == key })
		if at < 0 {
			at = len(r.lane.requestLines)
			line := &requestLine{key: key, lane: r.lane, route: r.page.route}
			r.lane.requestLines = append(r.lane.requestLines, line)
		}
		r.line = r.lane.requestLines[at]
		r.line.requests = append(r.line.requests, r)
		c.runRequests(r.line)
	}
}

// joinPage counts a request as in memory, and tells whether there were enough for its topic without it. A lane keeps
// one at least, and none behind one of its topic that is given back.
func (c *Core) joinPage(r *request) (enough bool) {
	if r.Topic == "" {
		known, _ := c.config.Routes.Route(r.Event.Type)
		r.Topic = known.Topic
	}
	route := c.routeOf(r.Topic)
	r.page = r.lane.pageOf(route)
	enough = r.page.requests > 0 && route.copies >= c.enoughCopies(route)
	r.page.requests++
	route.copies++
	r.lane.requests[r.ID] = true
	r.lane.requestBytes += r.Event.Bytes()
	c.unsettled++
	c.bytes += r.Event.Bytes()
	if r.Taken > 1 {
		r.lane.survived++
	}
	if r.isSuspect() {
		r.lane.suspects++
	}
	return enough
}

// isSuspect tells whether it was taken alone.
func (r *request) isSuspect() bool { return r.Taken > TakesBeforeAlone }

// leavePage forgets a request. A page that is done makes room for the next one, soon if it could be sent.
func (c *Core) leavePage(now time.Duration, e requestEnd) {
	e.page.requests--
	e.page.route.copies--
	delete(e.lane.requests, e.ID)
	e.lane.requestBytes -= e.Event.Bytes()
	c.unsettled--
	c.bytes -= e.Event.Bytes()
	if e.Taken > 1 {
		e.lane.survived--
	}
	if e.isSuspect() {
		e.lane.suspects--
	}
	switch {
	case e.page.requests > 0:
	case e.end == RequestOpen:
		e.page.takeAt = now + c.config.HeldPeriod
	default:
		c.takeMore(now, e.lane)
	}
}

// takeMore has a lane take more requests soon.
func (c *Core) takeMore(now time.Duration, l *lane) {
	l.besideAt = now
	c.redelivery.takeAt = min(c.redelivery.takeAt, now+c.config.MinPoll)
}

// enoughCopies is how many requests for a topic need to be in memory: what can be sent within seconds.
func (c *Core) enoughCopies(r *route) int {
	enough := c.config.MaxInFlight
	if r.probing {
		enough = r.allowance
	}
	if r.limit != nil {
		enough = min(enough, r.limit.enough())
	}
	return enough
}
