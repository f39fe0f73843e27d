package backfill

import "time"

// Pace is when the next batch may begin, after each of some.
func Pace(rate float64) func(begun time.Time, emitted int) time.Time {
	p := &pace{rate: rate}
	return p.next
}
