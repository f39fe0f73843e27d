package inbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/outbox"
)

const eventType = "thing_happened"

// kind is what a handler does with an event.
type kind string

const (
	plain    kind = "plain"
	together kind = "together" // takes so long that copies of the same moment meet
	fails    kind = "fails"    // fails the first time that a process tries
	poison   kind = "poison"   // fails always
	broken   kind = "broken"   // can never be handled, and the handler says so
)

// hopeless tells that an event belongs to the dead letters.
func (k kind) hopeless() bool { return k == poison || k == broken }

// An event is one that was fed, and how.
type event struct {
	ID   outbox.ID
	Kind kind
	// Copies is how often it was published, at least once.
	Copies int
	// Takes is how long its effect takes.
	Takes time.Duration
}

// body is what a handler reads.
type body struct {
	Kind  kind          `json:"kind"`
	Takes time.Duration `json:"takes"`
}

// message makes a message as a relay does, but without the id by which JetStream would drop the copies.
func (e event) message(subject string, number int) (*nats.Msg, error) {
	text, err := json.Marshal(body{e.Kind, e.Takes})
	if err != nil {
		return nil, fmt.Errorf("inbox proof: %w", err)
	}
	return &nats.Msg{Subject: subject, Data: text, Header: nats.Header{
		"event_id": {e.ID.String()}, "event_type": {eventType}, "aggregate_type": {"thing"}, "aggregate_id": {e.ID.String()},
		"outbox_seq": {fmt.Sprint(number)},
	}}, nil
}

// draw takes one of the kinds that are left.
func draw(kinds map[kind]int) kind {
	for _, k := range []kind{poison, broken} {
		if kinds[k] > 0 {
			kinds[k]--
			return k
		}
	}
	return plain
}

// shuffle makes so many events and the order in which their copies are published: one in ten is published twice or
// more, most of these at the same moment and the rest some time later. Of the kinds there are so many, early on.
func shuffle(random *rand.Rand, n int, kinds map[kind]int) (events []event, order []int) {
	late := map[int][]int{} // at which place, which events
	for i := range n {
		e := event{ID: outbox.NewID(), Kind: plain, Copies: 1, Takes: time.Duration(random.IntN(3)) * time.Millisecond}
		switch {
		case i%10 == 0 && i%40 != 30:
			e.Kind, e.Copies, e.Takes = together, 2+random.IntN(4)/3, time.Duration(50+random.IntN(50))*time.Millisecond
		case i%10 == 0:
			e.Copies = 2 + random.IntN(4)/3
		case i%20 == 15 && kinds[fails] > 0:
			e.Kind = fails
		default:
			e.Kind = draw(kinds)
		}
		order = append(order, i)
		for range e.Copies - 1 {
			if e.Kind == together {
				order = append(order, i)
				continue
			}
			place := i + 1 + random.IntN(n/4+1)
			late[place] = append(late[place], i)
		}
		events = append(events, e)
		order = append(order, late[i]...)
		delete(late, i)
	}
	for _, place := range slices.Sorted(maps.Keys(late)) {
		order = append(order, late[place]...)
	}
	return events, order
}
