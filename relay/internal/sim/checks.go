package sim

import "strings"

// checkPoison looks what became of events that kill relays, before they are healed: dead, and nobody else
// under that suspicion.
func (sim *Simulation) checkPoison() {
	letters := sim.store.Letters()
	for _, row := range sim.store.Events() {
		t := sim.broker.traits[row.ID]
		if t != nil && t.poison && t.kills > mostKills {
			sim.problemf("event %s has killed %d relays, and is in state %d", short(row.ID), t.kills, row.State)
		}
	}
	for _, letter := range letters {
		t := sim.broker.traits[letter.Event]
		if poison := t != nil && t.poison; poison != (letter.Reason == "crash_suspect") {
			sim.problemf("event %s died of %s, poison=%t", short(letter.Event), letter.Reason, poison)
		}
	}
}

// checkTheRest looks for what the checker cannot know.
func (sim *Simulation) checkTheRest() {
	for _, letter := range sim.store.Letters() {
		if letter.Reason == "unknown_event_type" {
			sim.problemf("event %s died of its type, long before its time", short(letter.Event))
		}
		if letter.Reason == "" || letter.Detail == "" && letter.Reason != "crash_suspect" {
			sim.problemf("the dead letter of %s says nothing", short(letter.Event))
		}
	}
	for _, alarm := range sim.record.alarms {
		if strings.Contains(alarm, "floor") {
			sim.problemf("alarm: %s", alarm)
		}
	}
}
