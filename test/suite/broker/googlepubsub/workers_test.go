package googlepubsub_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// manyKeys are more than the library would have requests under way by itself, on any machine.
func manyKeys() int { return max(300, 25*runtime.GOMAXPROCS(0)+50) }

func roomFor(keys int) googlepubsub.PublisherConfig {
	return googlepubsub.PublisherConfig{MaxOutstandingMessages: keys + 10}
}

// enqueueKeys hands over an event of each of so many aggregates.
func enqueueKeys(ctx context.Context, pipeliner publish.Pipeliner, name string, keys int) []pending {
	var all []pending
	for i := range keys {
		all = append(all, enqueue(ctx, pipeliner, newMessage(fmt.Sprint(name, i), 1))...)
	}
	return all
}

// Every aggregate has its request under way at the same time, however few processors there are: else the rate of a
// topic would be a few requests per round trip.
func TestNoAggregateWaitsForAnotherOne(t *testing.T) {
	t.Parallel()
	keys := manyKeys()
	middle := &middleman{}
	w := newEnv(t, roomFor(keys), middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	all := enqueueKeys(testContext(t), w.publisher, "", keys)
	eventually.True(t, fmt.Sprintf("%d requests are before the broker", keys),
		func() bool { return middle.heldUp() == keys }, func() string { return fmt.Sprint(middle.heldUp(), " are") })
	answer()
	for _, p := range all {
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
}

// Pub/Sub serves keys on many servers, and some may hang. The others go on.
func TestKeysThatHangDoNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	keys := manyKeys()
	middle := &middleman{}
	w := newEnv(t, roomFor(keys), middle.dialOption())
	answer := middle.holdOnly("order/hangs")
	t.Cleanup(answer)
	hanging := enqueueKeys(testContext(t), w.publisher, "hangs", keys)
	good := newMessages("good", 3)
	for _, p := range enqueue(testContext(t), w.publisher, good...) {
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
	w.expectHistory(t, good)
	answer()
	for _, p := range hanging {
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
}

// What is given up at a broker that hangs is before the broker by then, or never will be. So nothing of it comes later
// than one timeout, and Close takes no longer.
func TestCloseAtABrokerThatHangs(t *testing.T) {
	t.Parallel()
	// With a pool of workers it would be this long for each of the six times that all of them are busy.
	const timeout = 2 * time.Second
	keys := manyKeys()
	middle := &middleman{}
	config := roomFor(keys)
	config.Timeout = timeout
	w := newEnv(t, config, middle.dialOption())
	before := middle.came()
	t.Cleanup(middle.hold())
	ctx := newLate(t)
	all := enqueueKeys(ctx, w.publisher, "", keys)
	eventually.True(t, "a request is before the broker", func() bool { return middle.heldUp() > 0 })
	close(ctx.passed)
	for _, p := range all {
		if err := p.wait(t); err == nil {
			t.Error("acknowledged by a broker that hangs")
		}
	}
	began := time.Now()
	if err := w.publisher.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*timeout+time.Second {
		t.Errorf("closing took %v, and a request may take %v", took, timeout)
	}
	if came := middle.came() - before; came > keys {
		t.Errorf("%d requests for %d events", came, keys)
	}
	left := middle.came()
	eventually.True(t, "nothing is before the broker", func() bool { return middle.heldUp() == 0 })
	if later := middle.came() - left; later > 0 {
		t.Errorf("%d requests left after Close", later)
	}
}

// One event waits for room that does not come, with all the time in the world. Close does not wait as long.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	middle := &middleman{stubborn: true}
	w := newEnv(t, googlepubsub.PublisherConfig{MaxOutstandingMessages: 1, Timeout: timeout}, middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	ctx := testContext(t)
	sent := enqueue(ctx, w.publisher, newMessage("1", 1))
	eventually.True(t, "the request is before the broker", func() bool { return middle.heldUp() == 1 })
	waits := pending{message: newMessage("2", 1), answer: make(chan error, 2)}
	entered := make(chan struct{})
	go func() { // it stands there until there is room
		close(entered)
		w.publisher.Enqueue(ctx, waits.message, func(err error) { waits.answer <- err })
	}()
	<-entered
	closed := make(chan error, 1)
	began := time.Now()
	go func() { closed <- w.publisher.Close() }()
	if err := eventually.Receive(t, "the publisher is closed", closed); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > eventually.Patience/2 {
		t.Errorf("closing took %v", took)
	}
	if err := sent[0].wait(t); publish.ClassOf(err) != publish.TopicFault {
		t.Errorf("nobody knows of the one that is before the broker: %v", err)
	}
	if err := waits.wait(t); !errors.Is(err, publish.ErrNotSent) {
		t.Errorf("the one that has no room: %v", err)
	}
}

// What Close gives up is not sent when Close has returned, although the client library has it: a relay that has taken
// the lane over may have published newer events by then.
func TestWhatCloseGivesUpIsNotSentLater(t *testing.T) {
	t.Parallel()
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 1, Timeout: 10 * time.Second}, middle.dialOption())
	answerFirst := middle.hold()
	t.Cleanup(answerFirst)
	before := middle.came()
	all := enqueue(testContext(t), w.publisher, newMessages("1", 4)...)
	eventually.True(t, "the first request is before the broker", func() bool { return middle.heldUp() == 1 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = w.publisher.Close()
	}()
	ended, end := context.WithCancel(t.Context())
	end()
	eventually.True(t, "Close has begun", func() bool {
		return errors.Is(w.publisher.Publish(ended, newMessage("other", 1)), googlepubsub.ErrClosed)
	})
	// Close gives up half a second after a request that began with it would end. The second request begins later.
	began := time.Now()
	eventually.True(t, "a request that begins now outlives Close", func() bool { return time.Since(began) > time.Second })
	answerSecond := middle.hold()
	t.Cleanup(answerSecond)
	answerFirst()
	eventually.True(t, "the second request is before the broker", func() bool { return middle.came()-before == 2 })
	eventually.Receive(t, "Close returns", closed)
	for i, p := range all {
		if err := p.wait(t); (err == nil) != (i == 0) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	answerSecond()
	if err := w.publisher.Close(); err != nil { // returns when the client library is through with all that it has
		t.Error(err)
	}
	if came := middle.came() - before; came != 2 {
		t.Errorf("%d requests came, want the two that were under way", came)
	}
}
