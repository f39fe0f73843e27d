package daemon

import (
	"fmt"
	"os"
	"time"
)

// handleSignals drains at the first signal, and returns when the process must end at once, with the reason.
//
// Who stops processes may send two signals within milliseconds. With nothing in flight there is nothing to cut: the
// drain is about to end by itself, as was asked. Should it hang all the same, because the database is away and the
// lanes cannot be given back, a third signal ends it.
func handleSignals(signals <-chan os.Signal, inFlight func() int, drain func()) (why string) {
	<-signals
	drain()
	<-signals
	which := "second"
	if inFlight() == 0 {
		<-signals
		which = "third"
	}
	if events := inFlight(); events > 0 {
		return fmt.Sprintf("a %s signal: ended with %d events in flight, which will be sent again", which, events)
	}
	return "a " + which + " signal: ended before the drain was complete; nothing was in flight"
}

// inFlight counts the events of the relay that are not settled. Without a relay there are none.
func (p Program) inFlight() int {
	if running := p.running.Load(); running != nil {
		return running.Stats().InFlight
	}
	return 0
}

// sayCut tells why the process ends, unless nobody reads.
func sayCut(name, why string) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", name, why)
	}()
	select {
	case <-said:
	case <-time.After(200 * time.Millisecond):
	}
}
