package relay

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A publisher that panics does not say whose fault it is, nor whether the broker has the event. Where it panics
// whatever it is handed, it is out of order like a broker that is down: the class is unknown, nobody is charged, and
// the topic pauses. Only an event that panics again after others of its topic were acknowledged is the cause itself,
// and charged.

// suspects are the events whose publish has panicked.
type suspects struct {
	some   atomic.Bool // as long as there are none, an acknowledgement costs nothing more
	most   int
	mutex  sync.Mutex
	events map[outbox.ID]int // how many of its topic were acknowledged when it last panicked
	acked  map[string]int    // by topic, since there are suspects
}

// panicked takes in that the publish of an event has panicked, and tells whether it did before and others have passed
// since.
func (s *suspects) panicked(event outbox.ID, topic string) (again bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	passed, known := s.events[event]
	again = known && s.acked[topic] > passed
	if s.events == nil || !known && len(s.events) >= s.most { // those that are forgotten have one more try
		s.events, s.acked = map[outbox.ID]int{}, map[string]int{}
	}
	s.events[event] = s.acked[topic]
	s.some.Store(true)
	return again
}

// acknowledged takes in that the broker has an event.
func (s *suspects) acknowledged(event outbox.ID, topic string) {
	if !s.some.Load() {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.events == nil {
		return
	}
	s.acked[topic]++
	if delete(s.events, event); len(s.events) == 0 {
		s.events, s.acked = nil, nil
		s.some.Store(false)
	}
}

// panicked is what a publish came to that panicked.
func (s *sender) panicked(p *core.Publish, cause any) core.Outcome {
	outcome := core.Outcome{Class: core.Unknown, Detail: clean.Text(fmt.Sprintf("the publisher panicked: %v", cause))}
	if s.suspects.panicked(p.Event.ID, p.Topic) {
		outcome.Class = core.Rejected
	}
	return outcome
}

// answered says what the publisher's answer means, and keeps in mind what has passed.
func (s *sender) answered(p *core.Publish, err error) core.Outcome {
	outcome := classify(err)
	if outcome.Class == core.Acknowledged {
		s.suspects.acknowledged(p.Event.ID, p.Topic)
	}
	return outcome
}

// check holds an event against its contract. A check that panics has not passed it: that of a bad deployment does so
// with all events of the type, and then they are parked.
func (s *sender) check(stored outbox.Stored) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			what := fmt.Sprintf("%T", cause) // not its text: that may quote the payload
			if known, is := cause.(runtime.Error); is {
				what = known.Error()
			}
			err = &outbox.ContractError{Reason: outbox.InvalidPayload, Detail: "the contract's check panicked: " + what}
		}
	}()
	_, err = s.config.Registry.Check(stored)
	return err
}

// isNothing tells whether a publisher is one in name only: every call of it would panic.
func isNothing(publisher publish.Publisher) bool {
	value := reflect.ValueOf(publisher)
	switch value.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Func, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Chan:
		return value.IsNil()
	default:
		return false
	}
}
