package sim

import "strings"

// judgePoison asks what became of events that kill relays, before they are healed: dead, and nobody else
// under that suspicion.
func (w *World) judgePoison() {
	letters := w.store.Letters()
	for _, row := range w.store.Events() {
		t := w.broker.traits[row.ID]
		if t != nil && t.poison && t.kills > mostKills {
			w.problemf("event %s has killed %d relays, and is in state %d", short(row.ID), t.kills, row.State)
		}
	}
	for _, letter := range letters {
		t := w.broker.traits[letter.Event]
		if poison := t != nil && t.poison; poison != (letter.Reason == "crash_suspect") {
			w.problemf("event %s died of %s, poison=%t", short(letter.Event), letter.Reason, poison)
		}
	}
}

// judgeAlone asks what the judge cannot know.
func (w *World) judgeAlone() {
	for _, letter := range w.store.Letters() {
		if letter.Reason == "unknown_event_type" {
			w.problemf("event %s died of its type, long before its time", short(letter.Event))
		}
		if letter.Reason == "" || letter.Detail == "" && letter.Reason != "crash_suspect" {
			w.problemf("the dead letter of %s says nothing", short(letter.Event))
		}
	}
	for _, alarm := range w.record.alarms {
		if strings.Contains(alarm, "floor") {
			w.problemf("alarm: %s", alarm)
		}
	}
}
