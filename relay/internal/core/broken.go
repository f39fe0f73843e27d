package core

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
