package check

// checkDeaths compares rows, dead letters and what operators did.
func (c *Checker) checkDeaths() {
	for e := range c.entries.all {
		if !e.is(committed) {
			continue
		}
		if e.state.dead() && !e.is(hasLetter) {
			c.countf(DeadWithoutLetter, e.id, "is %s and has no dead letter", e.state)
		}
		d := c.deadRecords[e.self]
		if d == nil {
			d = &deadRecord{}
		}
		c.checkLetters(e, d)
		c.checkReasons(e, d)
		c.checkOperated(e, d)
	}
}

// checkLetters finds out whether every dead letter but the one of the present death was redriven. A redrive
// that is followed by another death leaves two letters.
func (c *Checker) checkLetters(e *entry, d *deadRecord) {
	open := d.letters - d.redrives
	if e.state.dead() || d.discards > 0 {
		open--
	}
	if open > 0 && (e.is(hasRow) || c.dumped()) {
		c.countf(LetterWithoutDead, e.id, "is %s, with %d dead letters and %d redrives", e.state, d.letters, d.redrives)
	}
}

// checkReasons finds out whether every death had a reason: a publish that failed since the last redrive, or a broken
// contract. Nobody publishes an event of a type that is not known, and of one that kills relays no answer comes. One
// reason does not stand for the other, but where both can have said it.
func (c *Checker) checkReasons(e *entry, d *deadRecord) {
	if !c.publishing.seen {
		return // nobody recorded what was published
	}
	var needed, rejected, broken int
	for _, reason := range d.reasons {
		if needsReason(reason) {
			needed++
		}
		switch reason {
		case "rejected", "max_attempts": // nobody but the broker says so
			rejected++
		case "invalid_payload", "aggregate_mismatch": // nobody but the contract does
			broken++
		}
	}
	switch failed := int(e.failures); {
	case rejected > failed:
		c.countf(IllegalTransitions, e.id, "died %d times of a publish that failed, and %d failed", rejected, failed)
		return
	case broken > d.broken:
		c.countf(IllegalTransitions, e.id, "died %d times of its contract, and broke it %d times", broken, d.broken)
		return
	case needed > d.reasonsToDie(e):
		c.countf(IllegalTransitions, e.id, "died %d times, and had %d reasons", needed, d.reasonsToDie(e))
		return
	}
	for _, death := range d.unprovoked {
		if c.end != nil && c.end.Interleaved && death <= len(d.reasons) && needsReason(d.reasons[death-1]) {
			c.countf(IllegalTransitions, e.id, "died of %s, and no publish had failed since the last redrive",
				d.reasons[death-1])
			return
		}
	}
}

func needsReason(reason string) bool {
	return reason != "unknown_event_type" && reason != "crash_suspect"
}

// checkOperated finds out whether operators' changes have their actions.
func (c *Checker) checkOperated(e *entry, d *deadRecord) {
	switch {
	case e.state == Discarded && d.discards == 0:
		c.countf(IllegalTransitions, e.id, "is discarded, and no operator did it")
	case e.state == Dead && e.is(hasLetter) && d.blocking && d.skips == 0:
		c.countf(IllegalTransitions, e.id, "died blocking, does not block any more, and no operator skipped it")
	case e.state == DeadBlocking && e.is(hasLetter) && !d.blocking:
		c.countf(IllegalTransitions, e.id, "blocks, and its dead letter says that it does not")
	case d.seenRedrives > d.redrives || d.seenSkips > d.skips || d.seenDiscards > d.discards:
		c.countf(IllegalTransitions, e.id, "was redriven, skipped or discarded more often than operators did it")
	}
}
