package check

import (
	"cmp"
	"maps"
	"slices"
)

// leaseKey names one lease of a lane.
type leaseKey struct {
	relay string
	token string
	lane  int
}

func (s *Step) lease() leaseKey { return leaseKey{s.Relay, s.Token, s.Lane} }

// lease is one holding of a lane, by the database's clock.
type lease struct {
	acquired    bool
	from, until int64
	sure        int64 // the last time at which it was certainly held
	lost        bool
	// applied is when the last settle under it took effect, and of which event.
	applied int64
	event   ID
}

func (c *Checker) lease(key leaseKey) *lease {
	l := c.leases[key]
	if l == nil {
		l = &lease{}
		c.leases[key] = l
	}
	return l
}

// laneStep folds what a relay did with a lane.
func (c *Checker) laneStep(s *Step) {
	if !s.valid() || s.Token == "" {
		c.malformedf("relay %q did something unknown, or without a token", s.Relay)
		return
	}
	l := c.lease(s.lease())
	switch s.Do {
	case Acquire:
		if l.acquired {
			c.malformedf("relay %q acquired lane %d twice with one token", s.Relay, s.Lane)
		}
		l.acquired, l.from, l.until, l.sure = true, s.At, s.Until, s.At
	case Renew:
		l.until, l.sure = max(l.until, s.Until), max(l.sure, s.At)
	case Release:
		// Without an answer nobody knows when it took effect: it was held at the last sure time.
		l.until = min(l.until, max(l.sure, s.At))
	case Lose:
		l.lost = true
	default: // about an event
	}
}

// fence records when a settle was applied, to compare it with later leases of the lane.
func (c *Checker) fence(e *entry, s *Step) {
	l := c.lease(s.lease())
	if s.At >= l.applied {
		l.applied, l.event = s.At, e.id
	}
}

// heldLane is a lease with its name, in order to be sorted.
type heldLane struct {
	leaseKey
	*lease
}

// checkLeases compares the leases of each lane with one another.
func (c *Checker) checkLeases() {
	lanes := map[int][]heldLane{}
	recorded := false
	for key, l := range c.leases {
		recorded = recorded || l.acquired
		lanes[key.lane] = append(lanes[key.lane], heldLane{key, l})
	}
	if !recorded {
		return // relays that record no leases cannot be checked by them
	}
	for _, lane := range slices.Sorted(maps.Keys(lanes)) {
		list := lanes[lane]
		slices.SortFunc(list, func(a, b heldLane) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.token, b.token), cmp.Compare(a.relay, b.relay))
		})
		c.checkLane(list)
	}
}

// checkLane takes the leases of one lane in the order in which they began.
func (c *Checker) checkLane(list []heldLane) {
	var holder heldLane // of the latest end so far
	var heldUntil int64
	for i, l := range list {
		if !l.acquired {
			if l.applied != 0 || l.event != (ID{}) {
				c.countf(StaleSettlesApplied, l.event, "was settled by relay %q with a token that never held lane %d",
					l.relay, l.lane)
			}
			continue
		}
		if holder.lease != nil && l.from < heldUntil && !c.failedOver(l.from, holder.sure) {
			c.countf(OwnersOverlapping, ID{}, "relay %q acquired lane %d at %d, relay %q held it until %d", l.relay, l.lane,
				l.from, holder.relay, heldUntil)
		}
		if until := c.until(l); holder.lease == nil || until > heldUntil {
			holder, heldUntil = l, until
		}
		if next := successor(list[i+1:], l); next != nil && l.applied >= next.from && !c.failedOver(next.from, l.applied) {
			c.countf(StaleSettlesApplied, l.event, "was settled at %d by relay %q, but relay %q had taken lane %d at %d",
				l.applied, l.relay, next.relay, l.lane, next.from)
		}
	}
}

// until is when a lease ended: with its server, if it was not renewed on the next one, or when it was taken from its
// relay.
func (c *Checker) until(l heldLane) int64 {
	until := l.until
	for i := range c.faults {
		f := &c.faults[i]
		ends := f.Kind == Failover || f.Kind == LeaseLost && f.Relay != "" && f.Relay == l.relay
		if ends && f.From >= l.sure {
			until = min(until, f.From)
		}
	}
	return until
}

// failedOver tells whether there was a failover between the two times: what was written at the first may be gone.
func (c *Checker) failedOver(from, to int64) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool {
		return f.Kind == Failover && from <= f.From && f.From <= to
	})
}

// successor finds the first lease that began after l did.
func successor(later []heldLane, l heldLane) *heldLane {
	for i := range later {
		if later[i].acquired && later[i].from > l.from {
			return &later[i]
		}
	}
	return nil
}

// checkOverlaps counts publishes that began beside another of their aggregate, where that is not declared.
func (c *Checker) checkOverlaps() {
	for _, o := range c.publishing.overlaps {
		e := c.entries.at(o.entry)
		topic := c.groups.topic(e.group)
		if c.end == nil || !slices.Contains(c.end.Pipelined, topic) {
			c.countf(OwnersOverlapping, e.id,
				"relay %q published it while another event of its aggregate was in flight on topic %q", o.relay, topic)
		}
	}
}
