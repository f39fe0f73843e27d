package daemon

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leakCheck{m}) }

// leakCheck waits for goroutines that were told to end: goleak itself looks for half a second, which may be too little
// on a busy machine.
type leakCheck struct{ *testing.M }

func (c leakCheck) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > patience {
			break // and fail
		}
	}
	return code
}

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

// receive waits until a channel is closed.
func receive(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(patience):
		t.Fatalf("%s: not in %s", what, patience)
	}
}
