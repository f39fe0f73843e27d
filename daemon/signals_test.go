package daemon

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
)

// send hands over a signal. What was sent before has been taken by then.
func send(signals chan<- os.Signal) { signals <- syscall.SIGTERM }

// A second signal cuts what is in flight, and says how much that is.
func TestASecondSignalCutsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	signals, why := make(chan os.Signal), make(chan string, 1)
	drained := false
	go func() { why <- handleSignals(signals, func() int { return 3 }, func() { drained = true }) }()
	send(signals)
	send(signals)
	if got := <-why; got != "a second signal: ended with 3 events in flight, which will be sent again" || !drained {
		t.Errorf("it says %q, drained: %v", got, drained)
	}
}

// K13: a second signal with nothing in flight leaves the drain to end by itself; a third one ends a drain that hangs.
func TestASecondSignalWithNothingInFlightCutsNothing(t *testing.T) {
	t.Parallel()
	for _, late := range []struct {
		inFlight int64
		says     string
	}{
		{0, "a third signal: ended before the drain was complete; nothing was in flight"},
		{1, "a third signal: ended with 1 events in flight, which will be sent again"}, // begun just before
	} {
		signals, why := make(chan os.Signal), make(chan string, 1)
		var inFlight atomic.Int64
		asked := make(chan struct{}, 3)
		go func() {
			why <- handleSignals(signals, func() int { asked <- struct{}{}; return int(inFlight.Load()) }, func() {})
		}()
		send(signals)
		send(signals)
		<-asked
		inFlight.Store(late.inFlight)
		select {
		case signals <- syscall.SIGTERM: // it waits for one more
		case got := <-why:
			t.Fatalf("the second signal ended the process: %q", got)
		}
		if got := <-why; got != late.says {
			t.Errorf("it says %q, want %q", got, late.says)
		}
	}
}
