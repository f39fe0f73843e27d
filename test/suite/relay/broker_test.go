package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// A broker remembers everything that relays hand to it. It acknowledges at once, unless answer says otherwise.
type broker struct {
	// answer is asked before the relay gets its answer. Try counts the deliveries of this event, from 1.
	answer func(ctx context.Context, message *publish.Message, try int) error

	mu       sync.Mutex
	all      []*delivery
	tries    map[outbox.ID]int
	begun    map[string]int // by relay
	flying   map[string]int // by topic and key
	overlaps int            // two at a time of one aggregate on one topic
	most     int            // in flight at once
	now      int            // in flight
}

// A delivery is one call of the publisher.
type delivery struct {
	publish.Message
	relay  string
	begun  time.Time
	ended  time.Time // zero: not yet
	result error
}

func newBroker() *broker {
	return &broker{tries: map[outbox.ID]int{}, begun: map[string]int{}, flying: map[string]int{}}
}

// as is the publisher of the relay with this name.
func (b *broker) as(name string) publish.Publisher {
	return publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
		d, try := b.begin(name, message)
		var err error
		defer func() { b.end(d, err) }()
		if b.answer != nil {
			err = b.answer(ctx, message, try)
		}
		return err
	})
}

func (b *broker) begin(name string, message *publish.Message) (*delivery, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := &delivery{Message: *message, relay: name, begun: time.Now()}
	d.Body, d.Attributes = bytes.Clone(message.Body), maps.Clone(message.Attributes)
	b.all = append(b.all, d)
	b.tries[d.ID]++
	b.begun[name]++
	if b.flying[d.line()]++; b.flying[d.line()] > 1 {
		b.overlaps++
	}
	b.now++
	b.most = max(b.most, b.now)
	return d, b.tries[d.ID]
}

func (b *broker) end(d *delivery, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.ended, d.result = time.Now(), err
	b.flying[d.line()]--
	b.now--
}

func (d *delivery) line() string { return d.Topic + " " + d.Key }

// n is the number in the payload of a note.
func (d *delivery) n() int {
	var envelope struct{ Data note }
	if json.Unmarshal(d.Body, &envelope) != nil {
		return -1
	}
	return envelope.Data.N
}

// deliveries lists those that pick picks, in the order in which they began.
func (b *broker) deliveries(pick func(*delivery) bool) []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	var picked []delivery
	for _, d := range b.all {
		if pick(d) {
			picked = append(picked, *d)
		}
	}
	return picked
}

func (b *broker) of(id outbox.ID) []delivery {
	return b.deliveries(func(d *delivery) bool { return d.ID == id })
}

// took lists the acknowledged events of an aggregate by the numbers in their payloads.
func (b *broker) took(aggregateID string) []int {
	var numbers []int
	for _, d := range b.deliveries(func(d *delivery) bool {
		return d.AggregateID == aggregateID && !d.ended.IsZero() && d.result == nil
	}) {
		numbers = append(numbers, d.n())
	}
	return numbers
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// countOf counts the deliveries of one relay.
func (b *broker) countOf(relay string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun[relay]
}

func (b *broker) inFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// twice lists the events that were acknowledged more than once.
func (b *broker) twice() []outbox.ID {
	acknowledged := map[outbox.ID]int{}
	for _, d := range b.deliveries(func(d *delivery) bool { return !d.ended.IsZero() && d.result == nil }) {
		acknowledged[d.ID]++
	}
	maps.DeleteFunc(acknowledged, func(_ outbox.ID, n int) bool { return n < 2 })
	return slices.Collect(maps.Keys(acknowledged))
}

// outOfOrder lists the aggregates of which an event was acknowledged for the first time behind a later one: a lane that
// was lost has its last events sent again, in order. Events of an aggregate are emitted with ascending numbers.
func (b *broker) outOfOrder() []string {
	last, wrong, before := map[string]int{}, map[string]bool{}, map[outbox.ID]bool{}
	for _, d := range b.deliveries(func(d *delivery) bool { return !d.ended.IsZero() && d.result == nil }) {
		if before[d.ID] {
			continue
		}
		before[d.ID] = true
		if n := d.n(); n < last[d.line()] {
			wrong[d.line()] = true
		} else {
			last[d.line()] = n
		}
	}
	return slices.Sorted(maps.Keys(wrong))
}
