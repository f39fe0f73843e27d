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
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// A broker slower than the deadline: nobody knows of what is before it, and nothing else of the key is sent until that
// request has ended.
func TestSlowerThanTheDeadline(t *testing.T) {
	t.Parallel()
	middle := &middleman{}
	// A request leaves when it has two events, and not before, however slowly they are handed over.
	config := googlepubsub.PublisherConfig{CountThreshold: 2, DelayThreshold: eventually.Patience / 2}
	w := newEnv(t, config, middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	messages := newMessages("1", 6)
	ctx := newLate(t)
	all := enqueue(ctx, w.publisher, messages...)
	eventually.True(t, "the request is before the broker", func() bool { return middle.heldUp() == 1 })
	close(ctx.passed)
	for i, p := range all { // the broker has still not answered
		err := p.wait(t)
		if class := classOf(err); class != "topic" && (i == 0 || class != "not sent") ||
			i == 0 && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	answer()
	sendAll(t, w.publisher, messages, 6)
	// The request that was before the broker went on, and no other one of those that were given up.
	if copies := w.expectHistory(t, messages); copies != 2 {
		t.Errorf("%d copies, want those of one request", copies)
	}
}

// An event that was given up is handed over again while its request is still before the broker. It waits for that, and
// when its time is over once more, it was certainly not sent.
func TestItsTurnDoesNotCome(t *testing.T) {
	t.Parallel()
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{}, middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	messages := newMessages("1", 2)
	for round, want := range []string{"topic", "not sent"} {
		ctx := newLate(t)
		first := enqueue(ctx, w.publisher, messages[0])
		eventually.True(t, "the request is before the broker", func() bool { return middle.heldUp() == 1 })
		close(ctx.passed)
		if err := first[0].wait(t); classOf(err) != want {
			t.Errorf("round %d: %v, want it to be: %s", round, err, want)
		}
	}
	answer()
	sendAll(t, w.publisher, messages, 2)
	if copies := w.expectHistory(t, messages); copies != 1 {
		t.Errorf("%d copies, want that of the first request", copies)
	}
}

// The library's own timeout ends a request that hangs before the relay's deadline does.
func TestTimeoutOfTheLibrary(t *testing.T) {
	t.Parallel()
	middle := &middleman{patient: true}
	w := newEnv(t, googlepubsub.PublisherConfig{Timeout: 200 * time.Millisecond}, middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	messages := newMessages("1", 3)
	ctx := testContext(t)
	if err := w.publisher.Publish(ctx, messages[0]); classOf(err) != "topic" || ctx.Err() != nil {
		t.Errorf("%v; the relay's deadline: %v", err, ctx.Err())
	}
	answer()
	sendAll(t, w.publisher, messages, 3)
	w.expectHistory(t, messages)
}

// The broker accepts and the answer is lost: told as the topic's fault, and sent again under the same id.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{pubsubemulator.ModeHang, pubsubemulator.ModeReset} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			middle, config := &middleman{patient: true}, googlepubsub.PublisherConfig{}
			if mode == pubsubemulator.ModeHang {
				config.Timeout = 200 * time.Millisecond // of waiting for the answer; to get there takes as long as it takes
			}
			w := newEnv(t, config, middle.dialOption())
			found := func() {}
			if mode == pubsubemulator.ModeHang {
				found = middle.loseAnswers()
			} else {
				w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindDropAnswer, Mode: mode, Count: 1})
			}
			t.Cleanup(found)
			messages := newMessages("1", 3)
			if err := w.publisher.Publish(testContext(t), messages[0]); classOf(err) != "topic" {
				t.Errorf("class %s: %v", classOf(err), err)
			}
			w.expectHistory(t, messages[:1])
			found()
			sendAll(t, w.publisher, messages, 3)
			if copies := w.expectHistory(t, messages); copies != 1 {
				t.Errorf("%d copies, want 1", copies)
			}
		})
	}
}

// Pub/Sub carries out a request after the client has given it up and has sent it again, with newer events behind it.
// Nothing that a publisher does prevents that. What holds is that every event comes for the first time in order.
func TestExecutedLate(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{
		CountThreshold: 3, DelayThreshold: time.Second, Timeout: 1500 * time.Millisecond,
	})
	w.inject(t, pubsubemulator.Fault{Kind: pubsubemulator.KindLate, Count: 1})
	messages := newMessages("1", 6)
	for i, p := range enqueue(testContext(t), w.publisher, messages[:3]...) {
		if err := p.wait(t); classOf(err) != "topic" && (i == 0 || classOf(err) != "not sent") {
			t.Errorf("event %d: %v", p.message.Seq, err)
		}
	}
	sendAll(t, w.publisher, messages, 3)
	before := w.expectHistory(t, messages)
	if released := w.server.Release(); released != 1 {
		t.Fatalf("%d late requests, want 1", released)
	}
	if copies := w.expectHistory(t, messages); copies <= before {
		t.Error("nothing came late, so nothing was shown")
	}
}

func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{})
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	messages := newMessages("1", 3)
	first := enqueue(ended, w.publisher, messages[0])
	behind := enqueue(testContext(t), w.publisher, messages[1:]...)
	if err := first[0].wait(t); !errors.Is(err, context.Canceled) || classOf(err) != "not sent" {
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
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{MaxOutstandingMessages: room, CountThreshold: 1}, middle.dialOption())
	answer := middle.hold()
	t.Cleanup(answer)
	ctx := testContext(t)
	var full [][]*publish.Message
	var all []pending
	for i := range room {
		messages := newMessages(fmt.Sprint(i), 1)
		full = append(full, messages)
		all = append(all, enqueue(ctx, w.publisher, messages...)...)
	}
	late := newMessages("late", 1)
	if err := enqueue(within(t, 100*time.Millisecond), w.publisher, late...)[0].wait(t); classOf(err) != "not sent" {
		t.Errorf("there was no room before the deadline, and the answer is: %v", err)
	}
	answer()
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
// the library has not sent. They are sent all the same. A machine that stands still meanwhile gets more time.
func TestGivingUpSparesThoseAhead(t *testing.T) {
	t.Parallel()
	for company := 500 * time.Millisecond; !givesUp(t, company); company *= 4 {
		if company > time.Minute {
			t.Fatal("those ahead were sent before the one behind them gave up: nothing was shown")
		}
	}
}

// givesUp has messages wait that long for company that has no room to come, and tells whether they still waited when
// the one behind them gave up.
func givesUp(t *testing.T, company time.Duration) (waited bool) {
	t.Helper()
	middle := &middleman{}
	w := newEnv(t, googlepubsub.PublisherConfig{
		MaxOutstandingMessages: 3, DelayThreshold: company, Timeout: 2 * eventually.Patience,
	}, middle.dialOption())
	answer := middle.hold() // no room comes of those that were sent
	t.Cleanup(answer)
	messages := newMessages("1", 4)
	ahead := enqueue(testContext(t), w.publisher, messages[:3]...)
	if err := enqueue(within(t, 50*time.Millisecond), w.publisher, messages[3])[0].wait(t); classOf(err) != "not sent" {
		t.Errorf("no room before the deadline: %v", err)
	}
	waited = middle.heldUp() == 0
	answer()
	for _, p := range ahead {
		if err := p.wait(t); err != nil {
			t.Errorf("event %d, ahead of the one that gave up: %v", p.message.Seq, err)
		}
	}
	sendAll(t, w.publisher, messages[3:], 1)
	if copies := w.expectHistory(t, messages); copies > 0 {
		t.Errorf("%d copies", copies)
	}
	return waited
}

// The broker goes away twice. Each time the acknowledgements behind a certain one are kept back until it is gone, so
// that every key has something left to send.
func TestRestartUnderLoad(t *testing.T) {
	t.Parallel()
	w := newEnv(t, googlepubsub.PublisherConfig{CountThreshold: 5})
	addr := w.server.Addr()
	const keys, each, restarts = 10, 400, 2
	all := make([][]*publish.Message, keys)
	var group sync.WaitGroup
	load := &counting{Pipeliner: w.publisher}
	for restart := range int64(restarts) {
		load.gates = append(load.gates, gate{behind: (restart + 1) * keys * each / 5, gone: make(chan struct{})})
	}
	for key := range all {
		all[key] = newMessages(fmt.Sprint(key), each)
		group.Go(func() { sendAll(t, load, all[key], 20) })
	}
	for _, gate := range load.gates {
		eventually.True(t, "load", func() bool { return load.acknowledged.Load() > gate.behind })
		before := load.failures.Load()
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
		close(gate.gone)
		eventually.True(t, "failures while the broker is away", func() bool { return load.failures.Load() > before })
		w.server = startEmulator(t, w.dir, addr)
	}
	group.Wait()
	w.expectHistory(t, all...)
}

// gate keeps back the acknowledgements behind a certain one until the broker is gone.
type gate struct {
	behind int64
	gone   chan struct{}
}

// counting counts answers, and waits a moment after a failure as the relay does.
type counting struct {
	publish.Pipeliner
	gates                  []gate
	acknowledged, failures atomic.Int64
}

func (c *counting) Enqueue(ctx context.Context, m *publish.Message, done func(error)) {
	c.Pipeliner.Enqueue(ctx, m, func(err error) {
		if err != nil {
			c.failures.Add(1)
			time.AfterFunc(10*time.Millisecond, func() { done(err) })
			return
		}
		number := c.acknowledged.Add(1)
		go func() { // the publisher does not wait for it
			for _, gate := range c.gates {
				if number > gate.behind {
					<-gate.gone
				}
			}
			done(nil)
		}()
	})
}

// The client talks to an emulator when the environment says so; the publisher needs nothing of its own.
func TestEmulatorByEnvironment(t *testing.T) {
	dir := t.TempDir()
	server := startEmulator(t, dir, "")
	t.Cleanup(func() { _ = server.Close() })
	t.Setenv("PUBSUB_EMULATOR_HOST", server.Addr())
	w := &env{dir: dir, server: server, client: newPlainClient(t)}
	w.createTopic(t, orders)
	messages := newMessages("1", 3)
	sendAll(t, newPublisher(t, w.client, googlepubsub.PublisherConfig{}), messages, 3)
	w.expectHistory(t, messages)
}
