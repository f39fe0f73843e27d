package check

// LegalChange tells whether a row may go from one state to another, and which verb an operator must have
// used for it; none means that relays may. A row begins as ready, and only retention ends it.
func LegalChange(from, to State) (verb Verb, legal bool) {
	switch from {
	case Absent:
		return "", to == Ready
	case Ready, Waiting:
		// Waiting rows go on where ready ones would have, and never back to ready: they are held rows.
		return "", to == Published || to == Retrying || to == Parked || to.dead() || from == Ready && to == Waiting
	case Retrying:
		// It is parked again where nobody knows its type.
		return "", to == Published || to == Retrying || to == Parked || to.dead()
	case Parked:
		return "", to == Retrying || to.dead()
	case DeadBlocking, Dead:
		return operated(from, to)
	case Published, Discarded:
		return "", to == Absent
	default:
		return "", false
	}
}

// operated is the part of LegalChange that only a named operator may do.
func operated(from, to State) (Verb, bool) {
	switch {
	case to == Retrying:
		return Redrive, true
	case to == Discarded:
		return Discard, true
	case from == DeadBlocking && to == Dead:
		return Skip, true
	default:
		return "", false
	}
}

// change folds one observed change. Whether an operator's change has its action is decided at the end,
// because the actions come with the final tables.
func (c *Checker) change(e *entry, ch *Change) {
	verb, legal := LegalChange(ch.From, ch.To)
	if !legal {
		c.countf(IllegalTransitions, e.id, "went from %s to %s", ch.From, ch.To)
		return
	}
	switch verb {
	case Redrive:
		c.deadRecord(e).seenRedrives++
		c.deadRecord(e).failuresBefore = c.deadRecord(e).reasonsToDie(e)
	case Skip:
		c.deadRecord(e).seenSkips++
	case Discard:
		c.deadRecord(e).seenDiscards++
	default: // relays may
		if ch.To.dead() {
			c.died(e)
		}
	}
}

// reasonsToDie counts what an event can have died of: publishes that failed, and looks at a contract that it broke.
func (d *deadRecord) reasonsToDie(e *entry) int { return int(e.failures) + d.broken }

// died records a death without a publish that failed since the last redrive, or since the beginning. Whether it had
// another reason, its letter says.
func (c *Checker) died(e *entry) {
	d := c.deadRecord(e)
	d.deaths++
	if d.reasonsToDie(e) == d.failuresBefore {
		d.unprovoked = append(d.unprovoked, d.deaths)
	}
}

// checkSettles counts events that were settled as published more than once, unless a failover took that back.
func (c *Checker) checkSettles() {
	takenBack := map[ID]int{}
	for _, f := range c.faults {
		if f.Kind == Failover && f.ID != (ID{}) {
			takenBack[f.ID]++
		}
	}
	for _, again := range c.publishing.again {
		id := c.entries.at(again.entry).id
		if takenBack[id]--; takenBack[id] < 0 {
			c.countf(IllegalTransitions, id, "was settled as published twice, the second time by relay %q", again.relay)
		}
	}
}

// deadRecord is what dead letters and operators have to do with an event; few events have one.
type deadRecord struct {
	letters      int
	reasons      []string // of the letters
	attempts     int      // of all letters together
	blocking     bool     // the last letter's
	redrives     int
	skips        int
	discards     int
	seenRedrives int // as changes of the row
	seenSkips    int
	seenDiscards int
	deaths       int   // as changes of the row
	unprovoked   []int // those of them, from 1 on, before which no publish failed since the last redrive
	broken       int   // how often it was found to break its contract: a reason to die, and no attempt
	// failuresBefore is what it could have died of at the last redrive.
	failuresBefore int
	// passed says that later events may go first, passedFrom from which arrival on.
	passed     bool
	passedFrom uint64
}

// pass records that from the given arrival on (0: nobody knows) later events need not wait for this one.
func (d *deadRecord) pass(next uint64) {
	if !d.passed || next < d.passedFrom {
		d.passed, d.passedFrom = true, next
	}
}

// letter folds a dead letter.
func (c *Checker) letter(e *entry, l *Letter) {
	d := c.deadRecord(e)
	if !l.Blocking {
		d.pass(l.Next)
	}
	if l.Undone {
		return
	}
	e.set(hasLetter)
	d.letters++
	d.reasons = append(d.reasons, l.Reason)
	d.attempts += l.Attempts
	d.blocking = l.Blocking
	if c.sum(l.Payload) != e.payload || c.sum(l.Headers) != e.headers {
		c.countf(Corrupted, e.id, "its dead letter has other bytes than were emitted")
	}
}

// action folds what an operator did. Without a name it was not an operator.
func (c *Checker) action(e *entry, a *Action) {
	if a.Actor == "" {
		c.malformedf("an action on %s has no actor", e.id)
		return
	}
	d, n := c.deadRecord(e), 1
	if a.Undone { // the change was seen, and is not in the tables
		n = 0
	}
	switch a.Verb {
	case Redrive:
		d.redrives += n
		d.seenRedrives -= 1 - n
	case Skip:
		d.skips += n
		d.seenSkips -= 1 - n
		d.pass(a.Next)
	case Discard:
		d.discards += n
		d.seenDiscards -= 1 - n
		d.pass(a.Next)
	case Free, Redeliver, Reissue:
	default:
		c.malformedf("an action on %s has an unknown verb", e.id)
	}
}
