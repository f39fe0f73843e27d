package check

import "slices"

// duplicate is a delivery that was not the first of its id, or not the first for its request.
type duplicate struct {
	entry   uint32
	arrival uint64
	request int64
}

// copied is what is known about one request.
type copied struct {
	entry     uint32
	row       *Request // of outbox_requests; nil: there is none
	delivered int
	first     uint64 // delivery
	sentLast  uint64 // Next of the last publish of it, by somebody who had the lane
	topics    []string
}

// delivery folds one message that the broker took.
func (c *Checker) delivery(e *entry, d *Delivery) {
	if d.Index == 0 {
		c.malformedf("a delivery of %s has no index", e.id)
		return
	}
	e.set(delivered)
	c.compare(e, d)
	switch {
	case d.Request != 0:
		c.requested(e, d)
	case e.first == 0:
		e.first = d.Index
	default:
		// Files may come in any order: whichever index is lower was the first.
		c.duplicates = append(c.duplicates, duplicate{entry: e.self, arrival: max(e.first, d.Index)})
		e.first = min(e.first, d.Index)
	}
}

// compare counts a delivery that is not what was emitted.
func (c *Checker) compare(e *entry, d *Delivery) {
	switch {
	case c.sum(d.Payload) != e.payload:
		c.countf(Corrupted, e.id, "delivery %d has another payload", d.Index)
	case c.sum(d.Headers) != e.headers:
		c.countf(Corrupted, e.id, "delivery %d has other headers", d.Index)
	case c.names(d.Type, d.Key) != e.names:
		c.countf(Corrupted, e.id, "delivery %d has another type or key", d.Index)
	case d.Request == 0 && d.Topic != c.groups.topic(e.group):
		c.countf(Corrupted, e.id, "delivery %d went to another topic", d.Index)
	}
}

// requested folds a copy that somebody asked for.
func (c *Checker) requested(e *entry, d *Delivery) {
	r := c.copied(d.Request, e)
	r.delivered++
	if !slices.Contains(r.topics, d.Topic) {
		r.topics = append(r.topics, d.Topic)
	}
	if r.first == 0 || d.Index < r.first {
		r.first = d.Index
	}
	if r.delivered > 1 {
		c.duplicates = append(c.duplicates, duplicate{entry: e.self, arrival: d.Index, request: d.Request})
		return
	}
	c.verdict.counts[Redelivered]++
}

// request folds a row of outbox_requests.
func (c *Checker) request(e *entry, r *Request) {
	known := c.copied(r.Request, e)
	if known.row != nil {
		c.malformedf("request %d is listed twice", r.Request)
	}
	known.row = cloned(r)
}

// copied finds or makes the request. A request is for one event.
func (c *Checker) copied(number int64, e *entry) *copied {
	r := c.copies[number]
	if r == nil {
		r = &copied{entry: e.self}
		c.copies[number] = r
	}
	if r.entry != e.self {
		c.malformedf("request %d is for two events", number)
	}
	return r
}

// effect folds how often consumers applied the event.
func (c *Checker) effect(e *entry, f *Effect) {
	if f.Count <= 0 {
		return
	}
	if e.is(hasEffect) {
		c.malformedf("the effects of %s are listed twice", e.id)
	}
	e.set(hasEffect)
	if f.Count > 1 {
		c.countf(DoubleEffects, e.id, "took effect %d times", f.Count)
		c.verdict.counts[DoubleEffects] += f.Count - 2
	}
}
