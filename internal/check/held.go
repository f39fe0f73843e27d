package check

// foldHeld folds a row of outbox_held.
func (c *Checker) foldHeld(e *entry, h *Held) {
	if e.kind != Absent {
		c.malformedf("the row of %s in outbox_held is listed twice", e.id)
		return
	}
	if !h.Kind.held() {
		c.malformedf("the row of %s in outbox_held has an impossible kind", e.id)
		return
	}
	e.kind = h.Kind
	switch {
	case h.Alien:
		c.countf(HeldDiffers, e.id, "has other names in outbox_held than in outbox_events")
	case h.Due != (h.Kind == Retrying):
		c.countf(HeldDiffers, e.id, "is %s in outbox_held, and whether it is due says otherwise", h.Kind)
	}
}

// checkHeld compares the two tables: an event is held exactly while it has a row in outbox_held.
func (c *Checker) checkHeld() {
	complete := c.end != nil && c.end.Held
	for e := range c.entries.all {
		switch held, has := e.is(hasRow) && e.state.held(), e.kind != Absent; {
		case held && !has && complete:
			c.countf(HeldWithoutRow, e.id, "is held, and has no row in outbox_held")
		case has && !held:
			c.countf(RowWithoutHeld, e.id, "is %s, and outbox_held has it as %s", e.state, e.kind)
		case has && e.state != e.kind:
			c.countf(HeldDiffers, e.id, "is %s, and outbox_held has it as %s", e.state, e.kind)
		}
	}
}
