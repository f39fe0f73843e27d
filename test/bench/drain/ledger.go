package drain

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A Ledger is what arrived at a publisher of this process. It is safe for many goroutines, and cheap: it
// is part of everybody's publish.
type Ledger struct {
	first atomic.Int64 // unix nanoseconds
	count atomic.Int64
	full  chan struct{}

	seen []atomic.Bool  // by number
	last []atomic.Int64 // the highest number of each aggregate

	duplicates, disorder, strange atomic.Int64
}

// NewLedger expects events numbered from 1 to this.
func NewLedger(events int) *Ledger {
	return &Ledger{full: make(chan struct{}), seen: make([]atomic.Bool, events+1), last: make([]atomic.Int64, aggregates)}
}

// Take notes the arrival of an event.
func (l *Ledger) Take(seq int64, aggregateID string) {
	if l.first.Load() == 0 {
		l.first.CompareAndSwap(0, time.Now().UnixNano())
	}
	account := accountNumber(aggregateID)
	if seq < 1 || seq >= int64(len(l.seen)) || account < 0 {
		l.strange.Add(1)
		return
	}
	if l.seen[seq].Swap(true) {
		l.duplicates.Add(1)
		return
	}
	if l.last[account].Swap(seq) > seq {
		l.disorder.Add(1)
	}
	if l.count.Add(1) == int64(len(l.seen)-1) {
		close(l.full)
	}
}

// Full is closed when every event has arrived.
func (l *Ledger) Full() <-chan struct{} { return l.full }

// First is when the first event arrived.
func (l *Ledger) First() time.Time { return time.Unix(0, l.first.Load()) }

// Count is how many different events arrived.
func (l *Ledger) Count() int { return int(l.count.Load()) }

// Check is an error unless every event arrived once, in the order of its aggregate.
func (l *Ledger) Check() error {
	lost := len(l.seen) - 1 - l.Count()
	if lost == 0 && l.duplicates.Load() == 0 && l.disorder.Load() == 0 && l.strange.Load() == 0 {
		return nil
	}
	return fmt.Errorf("drain: at the publisher: lost %d, duplicates %d, out of order %d, unknown %d",
		lost, l.duplicates.Load(), l.disorder.Load(), l.strange.Load())
}
