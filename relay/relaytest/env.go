package relaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// open makes a publisher that is closed when the case ends.
func (e *env) open(ctx context.Context) (publish.Publisher, error) {
	publisher, closeIt, err := e.harness.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("harness: opening a publisher: %w", err)
	}
	e.ends = append(e.ends, func() {
		if err := closeIt(); err != nil {
			e.problemf("closing the publisher: %v", err)
		}
	})
	return publisher, nil
}

// begin starts a fault and returns what ends it, once; the end of the case does so at the latest.
func (e *env) begin(ctx context.Context, fault Fault) (end func(), err error) {
	stop, err := fault(ctx, e.topic)
	if err != nil {
		return nil, fmt.Errorf("harness: beginning the fault: %w", err)
	}
	end = sync.OnceFunc(func() {
		if err := stop(context.WithoutCancel(ctx)); err != nil {
			e.problemf("harness: ending the fault: %v", err)
		}
	})
	e.ends = append(e.ends, end)
	return end, nil
}

// publish sends a message with a deadline, and holds the publisher to leaving the message alone and to
// returning in time.
func (e *env) publish(ctx context.Context, publisher publish.Publisher, message *publish.Message,
	deadline time.Duration,
) error {
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
		e.checkLate(ctx, returned.Sub(<-ended), deadline)
	}
	if err != nil {
		e.failures.Add(1)
	}
	if !bytes.Equal(before.Body, message.Body) || !maps.Equal(before.Attributes, message.Attributes) ||
		before.ID != message.ID || before.Key != message.Key || before.Topic != message.Topic {
		e.problemf("Publish changed the message that it was given")
	}
	e.note(before, err)
	return err
}

// checkLate holds the publisher to returning soon after its context ended.
func (e *env) checkLate(ctx context.Context, late, deadline time.Duration) {
	switch {
	case late <= e.harness.Grace:
	case errors.Is(ctx.Err(), context.Canceled):
		e.problemf("Publish returned %v after its context was cancelled; at most %v is allowed", late, e.harness.Grace)
	default:
		e.problemf("Publish returned %v after its deadline of %v; at most %v is allowed", late, deadline, e.harness.Grace)
	}
}

// charges tells whether an answer of this class counts against the event.
func charges(class publish.Class) bool { return class == publish.Rejected || class == publish.Terminal }

// note remembers that a message may arrive: only a rejection says for certain that it does not.
func (e *env) note(message *publish.Message, err error) {
	if charges(publish.ClassOf(err)) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.possible[message.ID.String()] = message
}

// mustPublish sends messages that nothing stands in the way of.
func (e *env) mustPublish(ctx context.Context, publisher publish.Publisher, messages ...*publish.Message) error {
	for _, message := range messages {
		if err := e.publish(ctx, publisher, message, e.harness.Deadline); err != nil {
			return fmt.Errorf("publishing event %d, with nothing in the way: %s error: %w", message.Seq,
				publish.ClassOf(err), err)
		}
	}
	return nil
}

// publishThrough sends a message again and again until it is acknowledged, as the relay does with faults
// that are nobody's. It returns how often it failed.
func (e *env) publishThrough(ctx context.Context, publisher publish.Publisher,
	message *publish.Message,
) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, e.harness.Recovery)
	defer cancel()
	for failures := 0; ; failures++ {
		err := e.publish(ctx, publisher, message, min(e.harness.Deadline, 2*time.Second))
		switch publish.ClassOf(err) {
		case publish.Published:
			return failures, nil
		case publish.TopicFault, publish.Unknown, publish.NotSent:
		case publish.Rejected, publish.Terminal:
			return failures, fmt.Errorf("event %d is charged for a fault that is the broker's: %s error: %w", message.Seq,
				publish.ClassOf(err), err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return failures, fmt.Errorf("event %d was not acknowledged within %v of recovery; the last %s error: %w",
				message.Seq, e.harness.Recovery, publish.ClassOf(err), err)
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
func (e *env) arrived(ctx context.Context) ([]Arrived, error) {
	arrived, err := e.harness.Arrived(ctx, e.topic)
	if err != nil {
		return nil, fmt.Errorf("harness: reading what arrived on %s: %w", e.topic, err)
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
func (e *env) checkArrived(ctx context.Context, acknowledged []*publish.Message, duplicates bool) ([]Arrived, error) {
	arrived, err := e.arrived(ctx)
	if err != nil {
		return nil, err
	}
	count := copies(arrived)
	for _, message := range acknowledged {
		switch n := count[message.ID.String()]; {
		case n == 0:
			e.problemf("event %d was acknowledged, but the broker does not have it", message.Seq)
		case n > 1 && !duplicates:
			e.problemf("event %d was acknowledged once and arrived %d times", message.Seq, n)
		}
	}
	for _, a := range arrived {
		e.mu.Lock()
		message, ok := e.possible[a.Attributes["event_id"]]
		e.mu.Unlock()
		if !ok {
			e.problemf("a message with event_id %q arrived, which was rejected or never sent", a.Attributes["event_id"])
			continue
		}
		e.compare(message, a)
	}
	return arrived, nil
}

// compare holds what arrived against what was sent.
func (e *env) compare(message *publish.Message, a Arrived) {
	if !bytes.Equal(message.Body, a.Body) {
		e.problemf("event %d: the body changed: %d bytes were sent, %d arrived", message.Seq, len(message.Body), len(a.Body))
	}
	for name, value := range message.Attributes {
		switch got, ok := a.Attributes[name]; {
		case !ok:
			e.problemf("event %d: attribute %s is missing", message.Seq, name)
		case got != value:
			e.problemf("event %d: attribute %s was sent as %q and arrived as %q", message.Seq, name, value, got)
		}
	}
	for name := range a.Attributes {
		if _, ok := message.Attributes[name]; !ok {
			e.problemf("event %d: attribute %q arrived, which was not sent", message.Seq, name)
		}
	}
	if _, cannot := e.harness.Cannot[Key]; !cannot && a.Key != message.Key {
		e.problemf("event %d: the key was sent as %q and arrived as %q", message.Seq, message.Key, a.Key)
	}
}

// checkOrder holds what arrived against the order in which the messages of each key were published.
// A copy may stand beside its original, never behind a later event.
func (e *env) checkOrder(arrived []Arrived, keys [][]*publish.Message) {
	type position struct{ key, number int }
	places := map[string]position{}
	for key, messages := range keys {
		for number, message := range messages {
			places[message.ID.String()] = position{key, number}
		}
	}
	latest := make([]int, len(keys))
	for _, a := range arrived {
		at, ok := places[a.Attributes["event_id"]]
		if !ok {
			continue
		}
		if at.number < latest[at.key] {
			e.problemf("order: %s: event %d arrived behind event %d", keys[at.key][0].Key, at.number, latest[at.key])
		}
		latest[at.key] = max(latest[at.key], at.number)
	}
}

// checkFirstOrder is checkOrder for messages that were sent again from a failed one on: copies may stand
// anywhere, but no event may arrive for the first time behind a later one.
func (e *env) checkFirstOrder(arrived []Arrived, keys [][]*publish.Message) {
	seen := map[string]bool{}
	firsts := arrived[:0:0]
	for _, a := range arrived {
		if id := a.Attributes["event_id"]; !seen[id] {
			seen[id] = true
			firsts = append(firsts, a)
		}
	}
	e.checkOrder(firsts, keys)
}
