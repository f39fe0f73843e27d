// Package state has the states of an event: their numbers, and the words for them. Go code takes both from here; SQL
// has the numbers, with a comment that names them.
//
// Of an event that is held, outbox_events has a state of 1 and outbox_held the number, as its kind. All others have
// theirs in outbox_events.
package state

import "fmt"

// State is where an event stands.
type State int16

// The states, by their numbers in the tables.
const (
	Ready        State = 0 // not looked at yet
	Retrying     State = 1 // held: failed, and due again at a known time
	Parked       State = 2 // held: of a type that is not known, or most of which break their contract
	Waiting      State = 3 // held: behind a held event of its aggregate and topic
	DeadBlocking State = 4 // held: dead, and later events of the aggregate wait behind it
	Dead         State = 5 // dead, and later events go on
	Published    State = 6 // acknowledged by the broker
	Discarded    State = 7 // closed by an operator
)

var names = [...]string{
	Ready: "ready", Retrying: "retrying", Parked: "parked", Waiting: "waiting", DeadBlocking: "dead and blocking",
	Dead: "dead", Published: "published", Discarded: "discarded",
}

// String is the state in the words of docs/reference/schema.md.
func (s State) String() string {
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", int16(s))
	}
	return names[s]
}

// All are the states in the order of their numbers.
func All() []State {
	all := make([]State, len(names))
	for i := range all {
		all[i] = State(i)
	}
	return all
}
