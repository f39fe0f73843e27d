package natsjetstream_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// TestRejections: what would lose messages, or never receive any, is refused at the start, with what to do about it.
func TestRejections(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	good := natsjetstream.PullConsumer(c)
	for what, test := range map[string]struct {
		durable func(config *jetstream.ConsumerConfig) // nil: none is made
		loop    natsjetstream.ConsumeConfig
		want    string
	}{
		"no stream":   {loop: natsjetstream.ConsumeConfig{Stream: "NONE"}, want: "there is no stream NONE"},
		"no consumer": {want: "make it with CreateConsumer and natsjetstream.PullConsumer"},
		"acknowledges none": {durable: func(c *jetstream.ConsumerConfig) {
			c.AckPolicy = jetstream.AckNonePolicy
		}, want: "AckExplicitPolicy"},
		"acknowledges all": {durable: func(c *jetstream.ConsumerConfig) {
			c.AckPolicy = jetstream.AckAllPolicy
		}, want: "AckExplicitPolicy"},
		"drops messages": {durable: func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 100 }, want: "set it to -1"},
		"short AckWait": {durable: func(c *jetstream.ConsumerConfig) {
			c.AckWait = 999 * time.Millisecond
		}, want: "AckWait"},
		"short BackOff": {durable: func(c *jetstream.ConsumerConfig) {
			c.BackOff = []time.Duration{time.Minute, time.Millisecond}
		}, want: "BackOff"},
		"headers only": {durable: func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }, want: "HeadersOnly"},
		"priority groups": {durable: func(c *jetstream.ConsumerConfig) {
			c.PriorityGroups, c.PriorityPolicy = []string{"a"}, jetstream.PriorityPolicyOverflow
		}, want: "priority groups"},
		"limits of pulls": {durable: func(c *jetstream.ConsumerConfig) { c.MaxRequestBatch = 1 }, want: "MaxRequest"},
		"nowhere to bury": {
			durable: func(*jetstream.ConsumerConfig) {}, loop: natsjetstream.ConsumeConfig{DeadLetters: "nowhere"},
			want: "no stream has the subject nowhere",
		},
		"eats what it buries": {
			durable: func(*jetstream.ConsumerConfig) {}, loop: natsjetstream.ConsumeConfig{DeadLetters: "events.dead"},
			want: "its own dead letters",
		},
		"eats some of it": {
			durable: func(c *jetstream.ConsumerConfig) { c.FilterSubjects = []string{"events.licenses.>", "events.*"} },
			loop:    natsjetstream.ConsumeConfig{DeadLetters: "events.dead"}, want: "its own dead letters",
		},
		"all at once": {
			durable: func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.HeadersOnly, c.AckWait = 5, true, time.Millisecond },
			want:    "HeadersOnly to false",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			test.loop.Durable = strings.ReplaceAll(what, " ", "-")
			if test.loop.Stream == "" {
				test.loop.Stream = stream
			}
			if test.loop.DeadLetters == "" {
				test.loop.DeadLetters = deadLetters
			}
			if test.durable != nil {
				config := good
				config.Durable = test.loop.Durable
				test.durable(&config)
				if _, err := w.js.CreateConsumer(w.patient(), stream, config); err != nil {
					t.Fatal(err)
				}
			}
			for name, try := range map[string]func(context.Context, jetstream.JetStream, *consumer.Consumer,
				natsjetstream.ConsumeConfig) error{
				"Check": natsjetstream.CheckConsumer, "Run": natsjetstream.Consume,
			} {
				ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
				defer cancel()
				if err := try(ctx, w.js, c, test.loop); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s says %v, want %q", name, err, test.want)
				}
			}
		})
	}
}

// TestAccepted: the dead letters may be in the stream of the events, if the consumer does not receive them; a push
// consumer may not be what receives.
func TestAccepted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	w.must(w.js.CreateConsumer(w.patient(), stream, natsjetstream.PullConsumer(c, "events.licenses", "events.orders.>")))
	config := natsjetstream.ConsumeConfig{Stream: stream, DeadLetters: "events.dead"}
	if err := natsjetstream.CheckConsumer(w.patient(), w.js, c, config); err != nil {
		t.Error(err)
	}
	w.must(w.js.CreatePushConsumer(w.patient(), stream, jetstream.ConsumerConfig{
		Durable: "push", DeliverSubject: "somewhere", AckPolicy: jetstream.AckExplicitPolicy,
	}))
	config.Durable = "push"
	if err := natsjetstream.CheckConsumer(w.patient(), w.js, c, config); err == nil ||
		!strings.Contains(err.Error(), "make a pull consumer") {
		t.Errorf("a push consumer: %v", err)
	}
}

// TestConnectionThatGivesUp is refused: an outage would end it.
func TestConnectionThatGivesUp(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	w.durable(c, never)
	for what, option := range map[string]nats.Option{"some": nats.MaxReconnects(60), "none": nats.NoReconnect()} {
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		err := natsjetstream.Consume(ctx, w.connect(w.server.Address, option), c, natsjetstream.ConsumeConfig{
			Stream: stream, DeadLetters: deadLetters,
		})
		if err == nil || !strings.Contains(err.Error(), "nats.MaxReconnects(-1)") {
			t.Errorf("%s reconnects: %v", what, err)
		}
	}
}

// TestServerAwayAtTheStart: the loop waits for it.
func TestServerAwayAtTheStart(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	w.durable(c, never)
	id := w.emit("a", 1)
	w.server.Close()
	js := w.connect(w.server.Address)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	config := natsjetstream.ConsumeConfig{Stream: stream, DeadLetters: deadLetters}
	if err := natsjetstream.CheckConsumer(ctx, js, c, config); err == nil {
		t.Error("Check found a server")
	}
	if err := natsjetstream.Consume(ctx, js, c, config); err != nil {
		t.Errorf("stopped while it waits, Run returned %v", err)
	}
	w.run(js, c, 0)
	eventually.True(t, "the loop says that it waits", func() bool {
		return strings.Contains(w.log.String(), "asking again")
	})
	w.start()
	eventually.True(t, "it is handled", func() bool { return w.seen.count(id, consumer.Handled) == 1 })
}

// TestConsumerIsMadeAgain: the loop goes on with it.
func TestConsumerIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	c := w.consumer(consumer.Config{}, failing)
	w.durable(c, never)
	w.run(w.js, c, 0)
	first := w.emit("a", 1)
	eventually.True(t, "the loop runs", func() bool { return w.seen.count(first, consumer.Handled) == 1 })
	if err := w.js.DeleteConsumer(w.patient(), stream, name); err != nil {
		t.Fatal(err)
	}
	second := w.emit("a", 2)
	w.durable(c, never)
	eventually.True(t, "the loop goes on", func() bool { return w.seen.count(second, consumer.Handled) == 1 })
}

// TestConsumerIsGoneAfterAnOutage: nobody tells the loop, and it finds out and says so.
func TestConsumerIsGoneAfterAnOutage(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	wire := proxy.New(t, w.server.Address)
	c := w.consumer(consumer.Config{}, failing)
	w.durable(c, never)
	w.run(w.connect(wire.Address()), c, 0)
	first := w.emit("a", 1)
	eventually.True(t, "the loop runs", func() bool { return w.seen.count(first, consumer.Handled) == 1 })
	wire.Block()
	if err := w.js.DeleteConsumer(w.patient(), stream, name); err != nil {
		t.Fatal(err)
	}
	second := w.emit("a", 2)
	wire.Heal()
	eventually.True(t, "the loop says what is wrong", func() bool {
		return strings.Contains(w.log.String(), "has no consumer compliance")
	})
	w.durable(c, never)
	eventually.True(t, "the loop goes on", func() bool { return w.seen.count(second, consumer.Handled) == 1 })
}

// TestClosedConnection: a loop whose connection was closed by the program says so.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	handling, release := make(chan struct{}, 1), make(chan struct{})
	c := w.consumer(consumer.Config{}, func(context.Context, *consumer.Event, license) error {
		handling <- struct{}{}
		<-release
		return nil
	})
	w.durable(c, never)
	w.emit("a", 1)
	js := w.connect(w.server.Address)
	ended := make(chan error, 1)
	go func() {
		ended <- natsjetstream.Consume(t.Context(), js, c, natsjetstream.ConsumeConfig{
			Stream: stream, DeadLetters: deadLetters,
		})
	}()
	let := w.letting(release)
	eventually.Receive(t, "a handler runs", handling)
	js.Conn().Close()
	let()
	if err := eventually.Receive(t, "the loop has ended", ended); err == nil ||
		!strings.Contains(err.Error(), "the connection was closed") {
		t.Errorf("Run returned %v", err)
	}
}

// TestPermissions: those that docs/guide/brokers/nats.md names are enough.
func TestPermissions(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	err := os.WriteFile(config, []byte(`
		no_auth_user: admin
		authorization: { users: [
			{ user: admin, password: admin }
			{ user: worker, password: worker, permissions: {
				publish: [ "$JS.API.CONSUMER.INFO.EVENTS.compliance", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.compliance",
					"$JS.API.STREAM.NAMES", "$JS.ACK.EVENTS.compliance.>", "dead.compliance" ]
				subscribe: [ "_INBOX.>" ]
			} }
		] }`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := newEnv(t, "--config", config)
	c := w.consumer(consumer.Config{MaxAttempts: 2}, failing)
	w.durable(c, never)
	rejected := make(chan error, 100)
	js := w.connect(w.server.Address, nats.UserInfo("worker", "worker"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { rejected <- err }))
	w.run(js, c, 0)
	w.emit("a", 13)
	good := w.emit("a", 14)
	w.done()
	if len(rejected) != 0 {
		t.Errorf("the server refused: %v", <-rejected)
	}
	if w.seen.count(good, consumer.Handled) != 1 || len(w.letters()) != 1 {
		t.Errorf("seen: %v", w.seen.all)
	}
}
