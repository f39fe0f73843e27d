// Package core is the relay as a state machine: it decides everything and does nothing. It makes no
// calls, has no goroutines and reads no clock; the shell around it makes the calls it asks for and tells it
// what they answered. So a whole fleet of relays can be run from one seed, in simulated time.
//
// The path of an event through the core:
//
//	fence.go    what can still appear below which number
//	reader.go   which rows to read, and what a read has shown
//	apart.go    a lane whose reads take too long: fewer rows, and away from the others
//	line.go     the events of one aggregate on one topic, in order
//	publish.go  which event is published next
//	blame.go    whose fault a failure is, and what follows
//	broken.go   a type most of whose events break their contract
//	route.go    a topic that fails is paused, probed and ramped up
//	detached.go a topic that the main read leaves out, and how it catches up
//	pause.go    what operators have paused
//	hold.go     what waits: for its retry, behind a dead event, for a relay that knows its type
//	care.go     an event that kills whoever publishes it
//	settle.go   writing down what became of events
//	redeliver.go published events that somebody wants delivered again
//	lanes.go    a lane while it is held: opened, read, drained, lost
//	members.go  which lanes this relay takes and gives back
//	sweep.go    looking once more at what must not be there
package core
