package core

import "time"

// typeHealth watches how many events of a type break their contract. After a bad deploy it is most of them, and then
// the fault is not theirs: those that break it are parked instead of dead, until most pass again. Every event is looked
// at all the same, and what passes goes out. So malformed events, of one tenant say, hold up nothing but their own
// aggregates.
//
// What was parked stays so when the pause ends: it would break its contract again. A release by an operator, or an
// owner who is new, lets it be tried once more.
type typeHealth struct {
	recent  [20]bool // whether each of the last events broke it
	next    int
	broken  int
	alarmed bool
}

// enoughBroken is how many of the recent events must have broken their contract for the type to pause.
const enoughBroken = 10

func (c *Core) typeOf(eventType string) *typeHealth {
	health := c.types[eventType]
	if health == nil {
		health = &typeHealth{}
		c.types[eventType] = health
	}
	return health
}

// brokeLikeMost takes in that an event broke its contract, and tells whether most of its type did before it.
func (c *Core) brokeLikeMost(r *row) bool {
	health := c.typeOf(r.Type)
	most := health.broken >= enoughBroken
	health.record(true)
	if most && !health.alarmed {
		health.alarmed = true
		c.alarm(r.Lane, "most events of type "+r.Type+" break their contract: those that do are parked, others go on")
	}
	return most
}

// record takes in one more event. Another pause is worth another alarm when all was well in between.
func (t *typeHealth) record(broke bool) {
	if t.recent[t.next] {
		t.broken--
	}
	if broke {
		t.broken++
	}
	t.recent[t.next] = broke
	t.next = (t.next + 1) % len(t.recent)
	if t.broken == 0 {
		t.alarmed = false
	}
}

// copyHealth is that of the copies of a type. They count apart from events: old ones may break what is asked of new
// ones, which says nothing about these.
type copyHealth struct {
	typeHealth

	until time.Duration // none is taken before
}

// brokenPause is for how long copies of a type wait of which most break their contract.
const brokenPause = 30 * time.Second

// copyBreaksLikeMost takes in whether a copy broke its contract, and tells whether most of its type do, be they copies
// or events. Then it waits, with the others of its type: whoever asked for them can cancel them, or mend the contract.
func (c *Core) copyBreaksLikeMost(now time.Duration, r *request, outcome Outcome) bool {
	if outcome.Class == NotSent || outcome.OfRow {
		return false
	}
	health := c.redelivery.types[r.Event.Type]
	if health == nil {
		health = &copyHealth{}
		if c.redelivery.types == nil {
			c.redelivery.types = map[string]*copyHealth{}
		}
		c.redelivery.types[r.Event.Type] = health
	}
	most := max(health.broken, c.typeOf(r.Event.Type).broken) >= enoughBroken
	health.record(outcome.Contract)
	if !most || !outcome.Contract {
		return false
	}
	health.until = now + brokenPause
	if !health.alarmed {
		health.alarmed = true
		c.alarm(r.lane.number, "most copies of type "+r.Event.Type+" break its contract: they wait")
	}
	return true
}

// copiesWait tells whether copies of a type wait for a contract that they do not break.
func (c *Core) copiesWait(now time.Duration, eventType string) bool {
	health := c.redelivery.types[eventType]
	return health != nil && now < health.until
}
