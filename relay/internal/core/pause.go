package core

import (
	"cmp"
	"slices"
	"time"
)

// Operators pause everything, a topic, or an event type. A relay hears of it with every heartbeat, of the first before
// it takes a lane, and goes by what it heard last. What is in flight then finishes.
//
// A topic is paused like one that fails, but without probes. A type shares its topic with others, so its events are
// met in order, and written down as waiting with whatever is behind them in their lines.

// obey takes in the pauses that stand.
func (c *Core) obey(now time.Duration, pauses []Pause) {
	before := c.pauses
	c.pauses = pauses
	for _, eventType := range c.config.Routes.Types() {
		route, _ := c.config.Routes.Route(eventType)
		if by := c.pausedTopic(route.Topic); by != nil {
			c.pauseRoute(now, c.routeOf(route.Topic), by)
		}
	}
	for _, r := range c.ordered {
		if r.by != "" && c.pausedTopic(r.topic) == nil {
			c.resumeRoute(now, r)
		}
	}
	for _, pause := range before {
		if pause.Scope == ScopeType && !c.pausedType(pause.Name) {
			c.resumeType(now, pause.Name)
		}
	}
}

// standing is the pause of a scope, nil if there is none.
func (c *Core) standing(scope Scope, name string) *Pause {
	for i := range c.pauses {
		if c.pauses[i].Scope == scope && c.pauses[i].Name == name {
			return &c.pauses[i]
		}
	}
	return nil
}

func (c *Core) pausedTopic(topic string) *Pause {
	if by := c.standing(ScopeTopic, topic); by != nil {
		return by
	}
	return c.standing(ScopeAll, "")
}

func (c *Core) pausedType(eventType string) bool { return c.standing(ScopeType, eventType) != nil }

// typesPausedByOperators lists the types of all such pauses.
func (c *Core) typesPausedByOperators() (types []string) {
	for _, pause := range c.pauses {
		if pause.Scope == ScopeType {
			types = append(types, pause.Name)
		}
	}
	return types
}

// spared tells whether events of an unknown type must not die now: somebody has paused them.
func (c *Core) spared(eventType string) bool {
	return c.pausedType(eventType) || c.standing(ScopeAll, "") != nil
}

// pauseRoute stops a route until an operator resumes it.
func (c *Core) pauseRoute(now time.Duration, r *route, by *Pause) {
	text := "paused by " + by.Actor + ": " + by.Reason
	r.saved = r.saved && r.by == text
	if r.by == "" {
		r.paused, r.retryAt = true, never
		r.round++
		c.detach(now, r)
	}
	r.by = text
}

// resumeRoute lets a route go on from where it was. One that failed before, or since, is probed.
func (c *Core) resumeRoute(now time.Duration, r *route) {
	r.by, r.saved = "", false
	if r.detail != "" || r.failures >= failuresToPause {
		r.retryAt = now
		return
	}
	r.probing = false
	c.wake(now, r)
}

// setAside writes down as waiting what is queued in a line whose next event is of a paused type.
func (c *Core) setAside(l *line) {
	c.hold(l.rows[l.inFlight].lane, l.key, never)
	c.waitBehind(l)
}

// awaitResume leaves a hold alone whose first row is of a paused type: a resume looks at it.
func (c *Core) awaitResume(h *hold) {
	h.queued = c.lines[h.key] == nil && h.changes == 0
}

// resumeType looks at the lines again in which events of the type may wait.
func (c *Core) resumeType(now time.Duration, eventType string) {
	route, _ := c.config.Routes.Route(eventType)
	for _, l := range c.sorted {
		var holds []*hold
		for key, h := range l.holds {
			if key.topic == route.Topic {
				holds = append(holds, h)
			}
		}
		slices.SortFunc(holds, func(a, b *hold) int {
			return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Type, b.key.Type),
				cmp.Compare(a.key.ID, b.key.ID))
		})
		for _, h := range holds {
			h.queued, h.due = false, min(h.due, now)
			c.reschedule(now, h)
		}
	}
}
