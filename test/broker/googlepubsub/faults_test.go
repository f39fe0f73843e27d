package googlepubsub_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/pubsubemulator"
)

// A broker slower than the deadline: nobody knows, and nothing of the key is sent until the library is
// through with what it has.
func TestSlowerThanTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, googlepubsub.Config{CountThreshold: 2})
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDelay, Milliseconds: 3000, Count: 1})
	messages := newMessages("1", 6)
	began := time.Now()
	for i, p := range enqueue(within(t, 200*time.Millisecond), w.publisher, messages...) {
		err := p.wait(t)
		if classOf(err) != "unknown" || (i == 0 && !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("the deadline was 200ms, the answers took %v", took)
	}
	sendAll(t, w.publisher, messages, 6)
	// The library went on with what it had, so there are copies; each copy came in order, too.
	if copies := w.expectHistory(t, messages); copies == 0 {
		t.Error("nothing was accepted late, so nothing was shown")
	}
}

// The library's own timeout ends a request that hangs before the relay's deadline does.
func TestTimeoutOfTheLibrary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, googlepubsub.Config{Timeout: 100 * time.Millisecond})
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDelay, Milliseconds: 30_000, Count: 1})
	messages := newMessages("1", 3)
	began := time.Now()
	err := w.publisher.Publish(testContext(t), messages[0])
	if took := time.Since(began); classOf(err) != "unknown" || took > 5*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	sendAll(t, w.publisher, messages, 3)
	w.expectHistory(t, messages)
}

// The broker accepts and the answer is lost: never told as anything but unknown or the route's fault; sent
// again under the same id.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for mode, class := range map[string]string{pubsubemulator.ModeHang: "unknown", pubsubemulator.ModeReset: "route"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, googlepubsub.Config{Timeout: 2 * time.Second})
			w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDropAnswer, Mode: mode, Count: 1})
			messages := newMessages("1", 3)
			if err := w.publisher.Publish(testContext(t), messages[0]); classOf(err) != class {
				t.Errorf("class %s, want %s: %v", classOf(err), class, err)
			}
			w.expectHistory(t, messages[:1])
			sendAll(t, w.publisher, messages, 3)
			if copies := w.expectHistory(t, messages); copies != 1 {
				t.Errorf("%d copies, want 1", copies)
			}
		})
	}
}

func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, googlepubsub.Config{})
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	messages := newMessages("1", 3)
	first := enqueue(ended, w.publisher, messages[0])
	behind := enqueue(testContext(t), w.publisher, messages[1:]...)
	if err := first[0].wait(t); !errors.Is(err, context.Canceled) || classOf(err) != "unknown" {
		t.Error(err)
	}
	for _, p := range behind {
		if err := p.wait(t); !errors.Is(err, googlepubsub.ErrBehindFailure) {
			t.Errorf("behind it: %v", err)
		}
	}
	w.expectHistory(t)
	sendAll(t, w.publisher, messages, 3)
	w.expectHistory(t, messages)
}

// A full buffer holds back what comes next, and what gives up waiting is not sent.
func TestFlowControlBlocks(t *testing.T) {
	t.Parallel()
	const room = 5
	w := newWorld(t, googlepubsub.Config{MaxOutstandingMessages: room, CountThreshold: 1})
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDelay, Milliseconds: 2000, Count: room})
	ctx := testContext(t)
	var full [][]*relay.Message
	var all []pending
	for i := range room {
		messages := newMessages(fmt.Sprint(i), 1)
		full = append(full, messages)
		all = append(all, enqueue(ctx, w.publisher, messages...)...)
	}
	late := newMessages("late", 1)
	if err := enqueue(within(t, 100*time.Millisecond), w.publisher, late...)[0].wait(t); classOf(err) != "unknown" {
		t.Errorf("there was no room before the deadline, and the answer is: %v", err)
	}
	for _, p := range all {
		if err := p.wait(t); err != nil {
			t.Errorf("%s, which had room: %v", p.message.Key, err)
		}
	}
	w.expectHistory(t, full...)
	sendAll(t, w.publisher, late, 1)
	w.expectHistory(t, append(full, late)...)
}

// A message that gives up waiting for room pauses its key in the library, with messages ahead of it that
// the library has not sent. They are sent all the same.
func TestGivingUpSparesThoseAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, googlepubsub.Config{MaxOutstandingMessages: 3, DelayThreshold: 2 * time.Second})
	messages := newMessages("1", 4)
	ahead := enqueue(testContext(t), w.publisher, messages[:3]...) // wait for company that has no room to come
	if err := enqueue(within(t, 50*time.Millisecond), w.publisher, messages[3])[0].wait(t); classOf(err) != "unknown" {
		t.Errorf("no room before the deadline: %v", err)
	}
	for _, p := range ahead {
		if err := p.wait(t); err != nil {
			t.Errorf("event %d, ahead of the one that gave up: %v", p.message.Seq, err)
		}
	}
	sendAll(t, w.publisher, messages[3:], 1)
	if copies := w.expectHistory(t, messages); copies > 0 {
		t.Errorf("%d copies", copies)
	}
}

func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, googlepubsub.Config{CountThreshold: 5})
	addr := w.server.Addr()
	const keys, each = 10, 400
	all := make([][]*relay.Message, keys)
	var group sync.WaitGroup
	var failures atomic.Int64
	for key := range all {
		all[key] = newMessages(fmt.Sprint(key), each)
		group.Go(func() { sendAll(t, counting{w.publisher, &failures}, all[key], 20) })
	}
	for restart := range int64(2) {
		eventually(t, "load", func() bool { return w.server.Stats().Accepted > (restart+1)*keys*each/5 })
		before := failures.Load()
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "failures while the broker is away", func() bool { return failures.Load() > before })
		w.server = startEmulator(t, w.dir, addr)
	}
	group.Wait()
	w.expectHistory(t, all...)
}

// counting counts failures, and waits a moment after one as the relay does.
type counting struct {
	relay.Pipeliner
	failures *atomic.Int64
}

func (c counting) Enqueue(ctx context.Context, m *relay.Message, done func(error)) {
	c.Pipeliner.Enqueue(ctx, m, func(err error) {
		if err != nil {
			c.failures.Add(1)
			time.AfterFunc(10*time.Millisecond, func() { done(err) })
			return
		}
		done(err)
	})
}

// The client talks to an emulator when the environment says so; the publisher needs nothing of its own.
func TestEmulatorByEnvironment(t *testing.T) {
	dir := t.TempDir()
	server := startEmulator(t, dir, "")
	t.Cleanup(func() { _ = server.Close() })
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Addr())
	w := &world{dir: dir, server: server, client: newPlainClient(t)}
	w.createTopic(t, orders)
	messages := newMessages("1", 3)
	sendAll(t, newPublisher(t, w.client, googlepubsub.Config{}), messages, 3)
	w.expectHistory(t, messages)
}
