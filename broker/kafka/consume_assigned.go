package kafka

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/consumer"
)

// partitionName is where a partition is.
type partitionName struct {
	topic  string
	number int32
}

// A delivery is a message that the loop has.
type delivery struct {
	record     *kgo.Record
	attributes map[string]string
	line       string // the aggregate
	done       bool
}

func newDelivery(record *kgo.Record) *delivery {
	d := &delivery{record: record, attributes: Attributes(record.Headers)}
	// Without an aggregate the key says what is to be in order.
	if event, _ := consumer.Read(d.attributes, nil); event.Aggregate.ID != "" {
		d.line = event.Key()
	} else {
		d.line = "key " + string(record.Key)
	}
	return d
}

// assigned is a partition that the group has given to this process, for as long as it has it. Messages are handled
// side by side, one line for each aggregate, and what is done up to the first that is not may be committed.
type assigned struct {
	partitionName
	handling context.Context //nolint:containedctx // ends when the partition is given back
	stop     context.CancelFunc
	before   *assigned     // what this process had of the partition before; its handlers may still run
	idle     chan struct{} // closed when no handler runs and none will

	turning sync.Mutex // held while the partition is paused or resumed

	mu        sync.Mutex
	ahead     []*delivery            // in order, from the first that is not done
	waiting   map[string][]*delivery // by line, behind the one that is handled
	lines     sync.WaitGroup
	next      int64 // the offset behind the last one that is done with all before it; -1: none is yet
	epoch     int32
	committed int64
	paused    bool
	gone      bool // given back or lost: nothing is committed for it any more
}

func newAssigned(parent context.Context, at partitionName, before *assigned) *assigned {
	a := &assigned{
		partitionName: at, before: before, idle: make(chan struct{}), waiting: map[string][]*delivery{},
		next: -1, committed: -1,
	}
	a.handling, a.stop = context.WithCancel(parent)
	return a
}

// add takes a message, and tells whether it is the first of its line.
func (a *assigned) add(d *delivery) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead = append(a.ahead, d)
	waiting, busy := a.waiting[d.line]
	if busy {
		a.waiting[d.line] = append(waiting, d)
		return false
	}
	a.waiting[d.line] = nil
	return true
}

// finish notes that a message is done, and returns the one behind it in its line, if there is one.
func (a *assigned) finish(d *delivery) *delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.done = true
	for len(a.ahead) > 0 && a.ahead[0].done {
		a.next, a.epoch = a.ahead[0].record.Offset+1, a.ahead[0].record.LeaderEpoch
		a.ahead[0] = nil
		a.ahead = a.ahead[1:]
	}
	waiting := a.waiting[d.line]
	if len(waiting) == 0 {
		delete(a.waiting, d.line)
		return nil
	}
	a.waiting[d.line] = waiting[1:]
	return waiting[0]
}

// turn tells whether the partition is to be paused, or to be resumed, and takes note.
func (a *assigned) turn(most int) (pause, resume bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !a.paused && len(a.ahead) >= most:
		a.paused = true
		return true, false
	case a.paused && len(a.ahead) <= most/2 && !a.gone:
		a.paused = false
		return false, true
	default:
		return false, false
	}
}

// toCommit is what the group is to remember, if it does not.
func (a *assigned) toCommit() (at kgo.EpochOffset, is bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone || a.next < 0 || a.next == a.committed {
		return at, false
	}
	return kgo.EpochOffset{Epoch: a.epoch, Offset: a.next}, true
}

// remembered notes what the group has been told.
func (a *assigned) remembered(offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.committed = offset
}

// leave ends it: nothing is begun any more. idle is closed when all that runs has ended.
func (a *assigned) leave() {
	a.stop()
	go func() {
		a.lines.Wait()
		if a.before != nil {
			<-a.before.idle
		}
		close(a.idle)
	}()
}

// let notes that nothing may be committed for it any more.
func (a *assigned) let() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = true
}
