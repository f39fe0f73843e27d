// Package goroutines runs the tests of a package, which must leave no goroutine behind, on a machine that may be busy.
package goroutines

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// What Google's client libraries start and never end.
var (
	// Linked is a goroutine that begins with every program into which the Pub/Sub client is linked.
	Linked = goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")
	// Received is what the Pub/Sub client leaves behind after each Receive: it waits for tickers that it stopped.
	Received = goleak.IgnoreTopFunction("cloud.google.com/go/pubsub/v2.(*messageIterator).streamKeepAliveHandler")
)

// Run runs the tests and returns the code to exit with. They fail as well if they leave goroutines behind, but for
// those that are ignored. Goroutines that were told to end have time for it: goleak itself looks for half a second.
func Run(m goleak.TestingM, ignored ...goleak.Option) int {
	return run(m, patience, ignored...)
}

func run(m goleak.TestingM, patience time.Duration, ignored ...goleak.Option) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	began := time.Now()
	err := goleak.Find(ignored...)
	for err != nil && time.Since(began) < patience {
		err = goleak.Find(ignored...) // that takes half a second
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		return 1
	}
	return 0
}
