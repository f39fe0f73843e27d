package natsjetstream_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

var errPlanned = errors.New("the handler fails: password=hunter2")

// failing fails for the event n = 13.
func failing(_ context.Context, _ *consumer.Event, payload license) error {
	if payload.N == 13 {
		return errPlanned
	}
	return nil
}

// isLetterOf compares a dead letter with the message that it was.
func isLetterOf(t *testing.T, letter *jetstream.RawStreamMsg, message *publish.Message, attempts string) {
	t.Helper()
	if !bytes.Equal(letter.Data, message.Body) || letter.Subject != deadLetters {
		t.Errorf("the letter to %s has the body %q, want %q", letter.Subject, letter.Data, message.Body)
	}
	got := natsjetstream.Attributes(letter.Header)
	want := maps.Clone(message.Attributes)
	maps.Copy(want, map[string]string{
		natsjetstream.AttributeConsumer: name, natsjetstream.AttributeAttempts: attempts,
		natsjetstream.AttributeStream:  stream,
		natsjetstream.AttributeSubject: "events." + topic, natsjetstream.AttributeSequence: "1",
		natsjetstream.AttributeReason: got[natsjetstream.AttributeReason],
	})
	if !maps.Equal(got, want) {
		t.Errorf("the letter has %v, want %v", got, want)
	}
	if reason := got[natsjetstream.AttributeReason]; reason == "" || strings.Contains(reason, "hunter2") {
		t.Errorf("the reason is %q", reason)
	}
}

// TestFaultI14Poison: what always fails becomes a dead letter after the bound, whole, and what is behind it is handled.
func TestFaultI14Poison(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{MaxAttempts: 3}, failing)
	w.durable(c, never)
	bad := w.message("a", 13)
	w.publish(bad)
	good := w.emit("a", 14)
	began := time.Now()
	w.run(w.js, c, 0)
	eventually.True(t, "the one behind is handled", func() bool { return w.seen.count(good, consumer.Handled) == 1 })
	w.done()
	if failed, poisoned := w.seen.count(bad.ID, consumer.Failed), w.seen.count(bad.ID, consumer.Poisoned); failed != 2 ||
		poisoned != 1 {
		t.Errorf("it failed %d times and was poisoned %d times", failed, poisoned)
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("three attempts took %s: they come a second and then two later", took)
	}
	letters := w.letters()
	if len(letters) != 1 {
		t.Fatalf("there are %d dead letters", len(letters))
	}
	isLetterOf(t, letters[0], bad, "3")
}

// TestUndecodable: what no attempt would make better becomes a dead letter at once.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(message *publish.Message){
		"no JSON": func(message *publish.Message) { message.Body = []byte("{") },
		"another payload": func(message *publish.Message) {
			message.Body = bytes.Replace(message.Body, []byte(`{"n":1}`), []byte(`{"n":"x"}`), 1)
		},
		"another event": func(message *publish.Message) {
			message.Body = bytes.Replace(message.Body, []byte(message.ID.String()),
				[]byte("01890000-0000-7000-8000-000000000000"), 1)
		},
		"no body":  func(message *publish.Message) { message.Body = nil },
		"no id":    func(message *publish.Message) { delete(message.Attributes, "event_id") },
		"no type":  func(message *publish.Message) { delete(message.Attributes, "event_type") },
		"odd text": func(message *publish.Message) { message.Attributes["event_id"] = "\r\nNats-Rollup: all\x00" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t)
			c := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error {
				t.Error("it was handled")
				return nil
			})
			w.durable(c, never)
			message := w.message("a", 1)
			spoil(message)
			w.publish(message)
			w.run(w.js, c, 0)
			w.done()
			letters := w.letters()
			if len(letters) != 1 || w.seen.count(anyEvent, consumer.Poisoned) != 1 {
				t.Fatalf("there are %d dead letters", len(letters))
			}
			isLetterOf(t, letters[0], message, "1")
		})
	}
}

// TestNotOurs: a message that no relay has published, without a header.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	w.durable(c, never)
	w.must(w.js.PublishMsg(w.patient(), &nats.Msg{Subject: "events.noise", Data: []byte("noise")}))
	w.run(w.js, c, 0)
	w.done()
	if letters := w.letters(); len(letters) != 1 || string(letters[0].Data) != "noise" ||
		letters[0].Header.Get(natsjetstream.AttributeSubject) != "events.noise" {
		t.Errorf("the dead letters are %v", letters)
	}
}

// TestDeadLetterIsWrittenOnce: the process dies, or its connection, between the letter and the word that gives the
// message up. The message comes again and becomes a letter again, which the stream has already.
func TestDeadLetterIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	wire := proxy.New(t, w.server.Address)
	c := w.consumer(consumer.Config{MaxAttempts: 1}, failing)
	w.durable(c, never)
	wire.At("+TERM", proxy.LoseRequest)
	w.run(w.connect(wire.Address()), c, 0)
	bad := w.emit("a", 13)
	eventually.True(t, "the word is lost", func() bool { return wire.Faults() == 1 })
	w.hurry()
	eventually.True(t, "it is a dead letter twice", func() bool { return w.seen.count(bad, consumer.Poisoned) >= 2 })
	w.done()
	if letters := w.letters(); len(letters) != 1 || wire.Faults() != 1 {
		t.Errorf("there are %d dead letters; the wire broke %d times", len(letters), wire.Faults())
	}
}

// TestDeadLettersAway: while the letter cannot be written the message stays in its stream, and others are handled.
func TestDeadLettersAway(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{MaxAttempts: 1}, failing)
	w.durable(c, never)
	w.run(w.js, c, 0)
	first := w.emit("a", 1)
	eventually.True(t, "the loop runs", func() bool { return w.seen.count(first, consumer.Handled) == 1 })
	if err := w.js.DeleteStream(w.patient(), deadStream); err != nil {
		t.Fatal(err)
	}
	bad := w.message("a", 13)
	w.publish(bad)
	good := w.emit("a", 14)
	eventually.True(t, "the one behind is handled", func() bool { return w.seen.count(good, consumer.Handled) == 1 })
	if info := w.info(); info.NumAckPending == 0 {
		t.Error("the message was given up without a letter")
	}
	w.must(w.js.CreateStream(w.patient(), jetstream.StreamConfig{Name: deadStream, Subjects: []string{"dead.>"}}))
	w.done()
	if letters := w.letters(); len(letters) != 1 || !bytes.Equal(letters[0].Data, bad.Body) {
		t.Errorf("the dead letters are %v", letters)
	}
}
