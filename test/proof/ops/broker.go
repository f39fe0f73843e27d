package ops

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/publish"
)

// arrival is a message as the broker took it.
type arrival struct {
	check.Delivery
	at time.Duration // since the load began
	// marked is its attribute that says for which request it is a copy.
	marked string
}

// broker takes all messages at once, and writes them down.
type broker struct {
	load *load
	mu   sync.Mutex
	list []arrival
}

// publish takes a message.
func (b *broker) publish(_ context.Context, message *publish.Message) error {
	sum := check.SumOf(message.Body)
	marked := message.Attributes["redelivered"]
	b.mu.Lock()
	b.list = append(b.list, arrival{
		Delivery: check.Delivery{
			Index: uint64(len(b.list) + 1), ID: message.ID, Type: message.EventType, Topic: message.Topic, Payload: sum,
			Request: message.Request,
		},
		at: time.Duration(b.load.since()), marked: marked,
	})
	b.mu.Unlock()
	if message.Topic == liveTopic {
		b.load.came(message.ID)
	}
	return nil
}

// arrivals are those so far.
func (b *broker) arrivals() []arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clip(b.list)
}

// number is how many messages have come so far.
func (b *broker) number() int { return len(b.arrivals()) }

// count is how many came to a topic behind an arrival.
func (b *broker) count(topic string, behind int) (n int) {
	for _, a := range b.arrivals()[behind:] {
		if a.Topic == topic {
			n++
		}
	}
	return n
}

// mismarked counts copies without the attribute of their request, and events that have one.
func (b *broker) mismarked() (n int) {
	for _, a := range b.arrivals() {
		want := ""
		if a.Request != 0 {
			want = strconv.FormatInt(a.Request, 10)
		}
		if a.marked != want {
			n++
		}
	}
	return n
}

// busy tells in which seconds a message came to a topic behind an arrival: then its job was at work.
func (b *broker) busy(topic string, behind int) (among func(at int64) bool, seconds int) {
	busy := map[int64]bool{}
	for _, a := range b.arrivals()[behind:] {
		if a.Topic == topic {
			busy[int64(a.at/time.Second)] = true
		}
	}
	return func(at int64) bool { return busy[at/int64(time.Second)] }, len(busy)
}
