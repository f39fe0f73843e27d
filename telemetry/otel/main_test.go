package otel_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(calm{m}) }

// calm waits for goroutines that were told to end: goleak itself looks for half a second, which may be too little on a
// busy machine.
type calm struct{ *testing.M }

func (c calm) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > time.Minute {
			break // and fail
		}
	}
	return code
}
