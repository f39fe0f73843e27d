package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

func TestSuite(t *testing.T) {
	t.Parallel()
	relaytest.TestPublisher(t, newHarness(t).suite())
}

// only runs some cases of the suite with a harness that differs.
func only(t *testing.T, suite relaytest.Harness, names ...string) {
	t.Helper()
	ran := 0
	for _, result := range relaytest.Check(t.Context(), suite, names...) {
		for _, problem := range result.Problems {
			t.Errorf("%s: %s", result.Case, problem)
		}
		if result.Skipped == "" {
			ran++
		}
	}
	if want := len(names) + 1; ran != want { // one is about the harness
		t.Errorf("%d cases ran, want %d", ran, want)
	}
}

func TestMaxMessageSizeOfTheStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.stream.MaxMsgSize = 4000
	suite := h.suite()
	suite.MaxBytes = 4000
	only(t, suite, "size limit", "one bad message among good ones/too large")
}

func TestRevokedPassword(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	suite := h.suite()
	suite.DenyAuth = h.revoke
	only(t, suite, "denied credentials")
}

// TestRevokedForLong: the client gives up on a server that refused it twice, unless it is told not to.
func TestRevokedForLong(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := h.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, h)
	end, err := h.revoke(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	err = eventually.Works(t.Context(), func() error {
		if n := h.proxy.Accepted(); n < 6 {
			return fmt.Errorf("the publisher tried to connect %d times", n)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the publisher does not try any more: %v", err)
	}
	message := relaytest.NewMessage("orders", 1, 1)
	wantTopicFault(t, send(t, publisher, message), "the password was changed")
	if err := end(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := eventually.Works(t.Context(), func() error { return send(t, publisher, message) }); err != nil {
		t.Errorf("the password is good again: %v", err)
	}
}

// TestLittleRoom: with room for three messages a publish waits, and does not fail.
func TestLittleRoom(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.config.MaxPending = 3
	only(t, h.suite(), "concurrent", "order")
}

// TestNoRoomInTime: what waits for room until its deadline was not sent, and is charged to nobody.
func TestNoRoomInTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.config.MaxPending = 1
	if err := h.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, h)
	h.proxy.Hold(true)
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	h.proxy.Count("the first")
	go func() {
		message := relaytest.NewMessage("orders", 1, 1)
		message.Body = []byte(`"the first"`)
		first <- publisher.Publish(ctx, message)
	}()
	eventually.True(t, "the first is on its way", func() bool { return h.proxy.Counted() == 1 })
	late, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if err := publisher.Publish(late, relaytest.NewMessage("orders", 2, 2)); publish.ClassOf(err) != publish.NotSent {
		t.Errorf("class %s: %v", publish.ClassOf(err), err)
	}
	cancel()
	if err := <-first; publish.ClassOf(err) != publish.Unknown {
		t.Errorf("the first, of which nobody knows: class %s: %v", publish.ClassOf(err), err)
	}
	h.proxy.Hold(false)
}

func open(t *testing.T, h *harness) publish.Publisher {
	t.Helper()
	publisher, closeIt, err := h.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeIt() })
	return publisher
}

func send(t *testing.T, publisher publish.Publisher, message *publish.Message) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	return publisher.Publish(ctx, message)
}

func wantTopicFault(t *testing.T, err error, what string) {
	t.Helper()
	if _, ok := errors.AsType[*publish.TopicError](err); !ok {
		t.Errorf("%s: want a TopicError, got %v", what, err)
	}
}

// TestNothingIsSentTwice: a message that no stream takes is sent once. The client would send it again later by itself,
// when nobody waits for it any more.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	conn, err := h.connect()
	if err != nil {
		t.Fatal(err)
	}
	if err := connected(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	publisher, err := natsjetstream.NewPublisher(conn, h.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	before := conn.Stats().OutMsgs
	wantTopicFault(t, send(t, publisher, &publish.Message{ID: outbox.NewID(), Topic: "nowhere", Body: []byte("{}")}),
		"no stream")
	if sent := conn.Stats().OutMsgs - before; sent != 1 {
		t.Errorf("the message was sent %d times", sent)
	}
}

// TestExpectedStream: a message does not go to a stream that took the subject over.
func TestExpectedStream(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.config = natsjetstream.PublisherConfig{Stream: "billing", Streams: map[string]string{"orders": "orders"}}
	for _, topic := range []string{"orders", "payments"} {
		if err := h.makeTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	publisher := open(t, h)
	if err := send(t, publisher, relaytest.NewMessage("orders", 1, 1)); err != nil {
		t.Errorf("the stream is the expected one: %v", err)
	}
	wantTopicFault(t, send(t, publisher, relaytest.NewMessage("payments", 1, 2)), "another stream has the subject")
	if arrived, err := h.arrived(t.Context(), "payments"); err != nil || len(arrived) > 0 {
		t.Errorf("the stream that was not meant has %d messages, %v", len(arrived), err)
	}
}

// TestFullStream: a stream that discards new messages is a fault of the route, and passes.
func TestFullStream(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]jetstream.StreamConfig{
		"messages": {MaxMsgs: 1}, "bytes": {MaxBytes: 700},
		"messages of a subject": {MaxMsgsPerSubject: 1, DiscardNewPerSubject: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.stream = full
			h.stream.Discard = jetstream.DiscardNew
			if err := h.makeTopic(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			publisher := open(t, h)
			if err := send(t, publisher, relaytest.NewMessage("orders", 1, 1)); err != nil {
				t.Fatal(err)
			}
			message := relaytest.NewMessage("orders", 1, 2)
			wantTopicFault(t, send(t, publisher, message), "the stream is full")
			err := h.server.admin(func(js jetstream.JetStream) error {
				stream, err := js.Stream(t.Context(), "orders")
				if err != nil {
					return err
				}
				return stream.Purge(t.Context())
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := send(t, publisher, message); err != nil {
				t.Errorf("the stream has room again: %v", err)
			}
		})
	}
}

// TestDedupeWindow: within the stream's window a copy counts as published and is not stored; behind the
// window it is stored again.
func TestDedupeWindow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.stream.Duplicates = 500 * time.Millisecond
	if err := h.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publisher := open(t, h)
	message := relaytest.NewMessage("orders", 1, 1)
	stored := func() int {
		arrived, err := h.arrived(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		return len(arrived)
	}
	for range 2 {
		if err := send(t, publisher, message); err != nil {
			t.Fatalf("within the window: %v", err)
		}
	}
	err := eventually.Works(t.Context(), func() error {
		if err := send(t, publisher, message); err != nil {
			return err
		}
		if stored() < 2 {
			return errors.New("the window has not passed")
		}
		return nil
	})
	if err != nil {
		t.Errorf("behind the window a copy is a new message: %v", err)
	}
}

// TestForeignHandler: the publisher does not take the caller's error handler away.
func TestForeignHandler(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := h.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 10)
	conn, err := natsjetstream.Connect("nats://relay:secret@"+h.server.address,
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { heard <- err }))
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	if err := connected(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	end, err := h.deny(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	wantTopicFault(t, send(t, publisher, relaytest.NewMessage("orders", 1, 1)), "no permission")
	select {
	case err := <-heard:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("the caller's handler heard %v", err)
		}
	case <-time.After(eventually.Patience):
		t.Error("the caller's handler heard nothing")
	}
	if err := end(context.Background()); err != nil {
		t.Error(err)
	}
}
