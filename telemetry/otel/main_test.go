package otel_test

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
		if time.Since(began) > time.Minute {
			break // and fail
		}
	}
	return code
}
