package goroutines

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// leaving is tests that leave a goroutine behind, which ends when it is told to.
type leaving struct {
	until <-chan struct{}
	code  int
}

func (l leaving) Run() int {
	go wait(l.until)
	return l.code
}

func wait(until <-chan struct{}) { <-until }

// TestRun is not parallel: goroutines of other tests would count.
func TestRun(t *testing.T) { //nolint:paralleltest // see above
	for name, c := range map[string]struct {
		code    int
		ends    bool
		ignored []goleak.Option
		want    int
	}{
		"it ends when goleak has given up": {ends: true, want: 0},
		"it does not end":                  {want: 1},
		"it is ignored": {
			ignored: []goleak.Option{goleak.IgnoreTopFunction("github.com/posthaste-dev/posthaste/test/kit/goroutines.wait")},
			want:    0,
		},
		"the tests failed": {code: 3, want: 3},
	} {
		until := make(chan struct{})
		limit := time.Second
		if c.ends {
			limit = patience
			time.AfterFunc(2*time.Second, func() { close(until) })
		}
		// The test's own goroutine is one that runs beside this one, and that waits for it.
		ignored := append([]goleak.Option{goleak.IgnoreCurrent()}, c.ignored...)
		if got := run(leaving{until, c.code}, limit, ignored...); got != c.want {
			t.Errorf("%s: the code is %d, want %d", name, got, c.want)
		}
		if !c.ends {
			close(until)
		}
	}
}
