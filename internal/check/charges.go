package check

// checkCharges counts events that paid for what was not their fault.
func (c *Checker) checkCharges() {
	for _, ch := range c.charges {
		e := c.entries.at(ch.entry)
		for i := range c.faults {
			if f := &c.faults[i]; c.topicFailed(f, e, ch) {
				c.chargedWronglyf(e, "was charged by relay %q at %d, while its topic had the fault %s", ch.relay, ch.at, f.Kind)
				break
			}
		}
	}
	if !c.publishing.seen {
		return // without the relays' word there is nothing to compare attempt_count with
	}
	for e := range c.entries.all {
		if attempts := c.allAttempts(e); attempts > int(e.failures) {
			c.chargedWronglyf(e, "has %d attempts with those of its dead letters, and failed by itself %d times", attempts,
				e.failures)
		}
	}
}

// allAttempts counts what the event was charged with: a redrive begins anew, and the dead letter keeps what was before.
func (c *Checker) allAttempts(e *entry) int {
	attempts := 0
	if e.is(hasRow) {
		attempts = int(e.attempts)
	}
	if d := c.deadRecords[e.self]; d != nil {
		if e.state.dead() || e.state == Discarded { // the last letter has the same
			return max(attempts, d.attempts)
		}
		attempts += d.attempts
	}
	return attempts
}

// topicFailed tells whether the topic had failed all the time from the publish to the charge. A publish
// that began before, or a charge that came after, may have had a reason of its own.
func (c *Checker) topicFailed(f *Fault, e *entry, ch charge) bool {
	return f.Kind.ofTopic() &&
		(f.Topic == "" || f.Topic == c.groups.topic(e.group)) &&
		(f.Relay == "" || f.Relay == ch.relay) &&
		(f.ID == ID{} || f.ID == e.id) &&
		f.From <= ch.started && (f.To == 0 || ch.at <= f.To)
}
