// Package calm runs the tests of a package on a machine that may be busy.
package calm

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// Run runs the tests and returns the code to exit with. They fail as well if they leave goroutines behind, but for those
// that are ignored. Goroutines that were told to end have time for it: goleak itself looks for half a second.
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
