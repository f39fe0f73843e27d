package relaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/relay"
)

// open makes a publisher that is closed when the case ends.
func (s *scene) open(ctx context.Context) (relay.Publisher, error) {
	publisher, closeIt, err := s.harness.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("harness: opening a publisher: %w", err)
	}
	s.ends = append(s.ends, func() {
		if err := closeIt(); err != nil {
			s.problemf("closing the publisher: %v", err)
		}
	})
	return publisher, nil
}

// begin starts a fault and returns what ends it, once; the end of the case does so at the latest.
func (s *scene) begin(ctx context.Context, fault Fault) (end func(), err error) {
	stop, err := fault(ctx, s.topic)
	if err != nil {
		return nil, fmt.Errorf("harness: beginning the fault: %w", err)
	}
	end = sync.OnceFunc(func() {
		if err := stop(context.WithoutCancel(ctx)); err != nil {
			s.problemf("harness: ending the fault: %v", err)
		}
	})
	s.ends = append(s.ends, end)
	return end, nil
}

// publish sends a message with a deadline, and holds the publisher to leaving the message alone and to
// returning in time.
func (s *scene) publish(ctx context.Context, publisher relay.Publisher, message *relay.Message, deadline time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	// On a busy machine nobody runs at the moment when the context ends. So it counts from when another one ran who waited
	// for the same.
	ended := make(chan time.Time, 1)
	unheard := context.AfterFunc(ctx, func() { ended <- time.Now() })
	before := clone(message)
	err := publisher.Publish(ctx, message)
	returned := time.Now()
	if !unheard() {
		s.checkLate(ctx, returned.Sub(<-ended), deadline)
	}
	if err != nil {
		s.failures.Add(1)
	}
	if !bytes.Equal(before.Body, message.Body) || !maps.Equal(before.Attributes, message.Attributes) ||
		before.ID != message.ID || before.Key != message.Key || before.Topic != message.Topic {
		s.problemf("Publish changed the message that it was given")
	}
	s.note(before, err)
	return err
}

// checkLate holds the publisher to returning soon after its context ended.
func (s *scene) checkLate(ctx context.Context, late, deadline time.Duration) {
	switch {
	case late <= s.harness.Grace:
	case errors.Is(ctx.Err(), context.Canceled):
		s.problemf("Publish returned %v after its context was cancelled; at most %v is allowed", late, s.harness.Grace)
	default:
		s.problemf("Publish returned %v after its deadline of %v; at most %v is allowed", late, deadline, s.harness.Grace)
	}
}

// note remembers that a message may arrive: only a refusal says for certain that it does not.
func (s *scene) note(message *relay.Message, err error) {
	if class := classOf(err); class == rejected || class == terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayArrive[message.ID.String()] = message
}

// mustPublish sends messages that nothing stands in the way of.
func (s *scene) mustPublish(ctx context.Context, publisher relay.Publisher, messages ...*relay.Message) error {
	for _, message := range messages {
		if err := s.publish(ctx, publisher, message, s.harness.Deadline); err != nil {
			return fmt.Errorf("publishing event %d, with nothing in the way: %s error: %w", message.Seq, classOf(err), err)
		}
	}
	return nil
}

// publishThrough sends a message again and again until it is acknowledged, as the relay does with faults
// that are nobody's. It returns how often it failed.
func (s *scene) publishThrough(ctx context.Context, publisher relay.Publisher, message *relay.Message) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.harness.Recovery)
	defer cancel()
	for failures := 0; ; failures++ {
		err := s.publish(ctx, publisher, message, min(s.harness.Deadline, 2*time.Second))
		switch classOf(err) {
		case acknowledged:
			return failures, nil
		case routeFault, unknown:
		case rejected, terminal:
			return failures, fmt.Errorf("event %d is blamed for a fault that is the broker's: %s error: %w", message.Seq, classOf(err), err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return failures, fmt.Errorf("event %d was not acknowledged within %v of recovery; the last %s error: %w",
				message.Seq, s.harness.Recovery, classOf(err), err)
		}
	}
}

// pause waits, and tells whether it waited to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// arrived lists what is on the case's topic.
func (s *scene) arrived(ctx context.Context) ([]Arrived, error) {
	arrived, err := s.harness.Arrived(ctx, s.topic)
	if err != nil {
		return nil, fmt.Errorf("harness: reading what arrived on %s: %w", s.topic, err)
	}
	return arrived, nil
}

// copies is how often each event arrived, by id.
func copies(arrived []Arrived) map[string]int {
	count := map[string]int{}
	for _, a := range arrived {
		count[a.Attributes["event_id"]]++
	}
	return count
}

// checkArrived holds the topic against the messages that were acknowledged: all there, none of them
// changed, nothing else, and as many copies as the broker is entitled to.
func (s *scene) checkArrived(ctx context.Context, acknowledged []*relay.Message, duplicates bool) ([]Arrived, error) {
	arrived, err := s.arrived(ctx)
	if err != nil {
		return nil, err
	}
	count := copies(arrived)
	for _, message := range acknowledged {
		switch n := count[message.ID.String()]; {
		case n == 0:
			s.problemf("event %d was acknowledged, but the broker does not have it", message.Seq)
		case n > 1 && !duplicates:
			s.problemf("event %d was acknowledged once and arrived %d times", message.Seq, n)
		}
	}
	for _, a := range arrived {
		s.mu.Lock()
		message, ok := s.mayArrive[a.Attributes["event_id"]]
		s.mu.Unlock()
		if !ok {
			s.problemf("a message with event_id %q arrived, which was refused or never sent", a.Attributes["event_id"])
			continue
		}
		s.compare(message, a)
	}
	return arrived, nil
}

// compare holds what arrived against what was sent.
func (s *scene) compare(message *relay.Message, a Arrived) {
	if !bytes.Equal(message.Body, a.Body) {
		s.problemf("event %d: the body changed: %d bytes were sent, %d arrived", message.Seq, len(message.Body), len(a.Body))
	}
	for name, value := range message.Attributes {
		switch got, ok := a.Attributes[name]; {
		case !ok:
			s.problemf("event %d: attribute %s is missing", message.Seq, name)
		case got != value:
			s.problemf("event %d: attribute %s was sent as %q and arrived as %q", message.Seq, name, value, got)
		}
	}
	for name := range a.Attributes {
		if _, ok := message.Attributes[name]; !ok {
			s.problemf("event %d: attribute %q arrived, which was not sent", message.Seq, name)
		}
	}
	if _, cannot := s.harness.Cannot[Key]; !cannot && a.Key != message.Key {
		s.problemf("event %d: the key was sent as %q and arrived as %q", message.Seq, message.Key, a.Key)
	}
}

// checkOrder holds what arrived against the order in which the messages of each key were published.
// A copy may stand beside its original, never behind a later event.
func (s *scene) checkOrder(arrived []Arrived, keys [][]*relay.Message) {
	type place struct{ key, number int }
	places := map[string]place{}
	for key, messages := range keys {
		for number, message := range messages {
			places[message.ID.String()] = place{key, number}
		}
	}
	latest := make([]int, len(keys))
	for _, a := range arrived {
		at, ok := places[a.Attributes["event_id"]]
		if !ok {
			continue
		}
		if at.number < latest[at.key] {
			s.problemf("order: %s: event %d arrived behind event %d", keys[at.key][0].Key, at.number, latest[at.key])
		}
		latest[at.key] = max(latest[at.key], at.number)
	}
}

// checkFirstOrder is checkOrder for messages that were sent again from a failed one on: copies may stand
// anywhere, but no event may arrive for the first time behind a later one.
func (s *scene) checkFirstOrder(arrived []Arrived, keys [][]*relay.Message) {
	seen := map[string]bool{}
	firsts := arrived[:0:0]
	for _, a := range arrived {
		if id := a.Attributes["event_id"]; !seen[id] {
			seen[id] = true
			firsts = append(firsts, a)
		}
	}
	s.checkOrder(firsts, keys)
}
