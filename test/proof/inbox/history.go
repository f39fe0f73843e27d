package inbox

import (
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A history is what one consumer was given and did, as the tables, the broker and the journals tell it.
type history struct {
	Consumer string
	Form     form
	Hold     time.Duration
	Events   []event
	Effects  []effect // in the order in which they happened
	Lines    map[string][]line
	Endings  map[string]ending
	// Dead are the events of the dead letters, and why.
	Dead map[outbox.ID]string
	// Left is what the broker still had for the consumer when the proof gave up.
	Left int
	// Forgot is when Redis forgot everything.
	Forgot []time.Time
}

// effect is a row of the table of effects.
type effect struct {
	Event  outbox.ID
	Worker string
	At     time.Time
}

// ending is how a process ended.
type ending struct {
	// Killed tells that it was, at a point or, if that is empty, at a random moment.
	Killed bool
	Point  string
	// Stopped tells that it stood still for longer than its holds last.
	Stopped bool
}
