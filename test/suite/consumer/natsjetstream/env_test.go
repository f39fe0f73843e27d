// Package natsjetstream_test runs the consumer's loop against real servers: a NATS server of each test's own, which it
// may kill, and PostgreSQL where the effect is what matters.
package natsjetstream_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

const (
	name        = "compliance"
	stream      = "EVENTS"
	topic       = "licenses"
	deadStream  = "DEAD"
	deadLetters = "dead.compliance"
	// never is an AckWait that no test outlives: what comes again before was given back.
	never = time.Hour
)

// license is the events' payload: the n-th change of an aggregate.
type license struct {
	N int `json:"n"`
}

var changed = outbox.Define[license](outbox.Contract{
	Type: "license_changed", Version: 1, Aggregate: "license", Topic: topic,
})

// env is a NATS server with a stream of events, one for dead letters, and a publisher.
type env struct {
	t         *testing.T
	server    *server.Server
	js        jetstream.JetStream
	publisher *natsjetstream.Publisher
	seen      seen
	log       server.Output
	seq       int64
}

// newEnv makes one; more are arguments of the server's.
func newEnv(t *testing.T, more ...string) *env {
	t.Helper()
	nats, err := server.NewNATS(t.TempDir(), more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	w := &env{t: t, server: nats}
	w.start()
	w.js = w.connect(nats.Address)
	w.must(w.js.CreateStream(w.patient(), jetstream.StreamConfig{Name: stream, Subjects: []string{"events.>"}}))
	w.must(w.js.CreateStream(w.patient(), jetstream.StreamConfig{Name: deadStream, Subjects: []string{"dead.>"}}))
	conn, err := natsjetstream.Connect(nats.Address, reconnects...)
	if err != nil {
		t.Fatal(err)
	}
	if w.publisher, err = natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{
		Stream: stream, Prefix: "events.",
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.publisher.Close() })
	return w
}

func (w *env) start() {
	w.t.Helper()
	if err := w.server.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// patient is for questions to the server: without a deadline the client gives up after some seconds.
func (w *env) patient() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), eventually.Patience)
	w.t.Cleanup(cancel)
	return ctx
}

// must is for what returns something that the test does not need.
func (w *env) must(_ any, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var reconnects = []nats.Option{
	nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.Timeout(eventually.Patience),
	nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond),
}

// connect makes a connection of a consumer's own.
func (w *env) connect(address string, more ...nats.Option) jetstream.JetStream {
	w.t.Helper()
	conn, err := nats.Connect(address, append(append([]nats.Option{}, reconnects...), more...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// durable makes the stream's consumer, with changes.
func (w *env) durable(c *consumer.Consumer, ackWait time.Duration, changes ...func(*jetstream.ConsumerConfig)) {
	w.t.Helper()
	config := natsjetstream.PullConsumer(c)
	config.AckWait = ackWait
	for _, change := range changes {
		change(&config)
	}
	w.must(w.js.CreateConsumer(w.patient(), stream, config))
}

// hurry makes the server send again what was not acknowledged: it does not wait for it any longer.
func (w *env) hurry() {
	w.t.Helper()
	config := w.info().Config
	config.AckWait = time.Second
	w.must(w.js.UpdateConsumer(w.patient(), stream, config))
}

// message is the n-th event of an aggregate, as a relay would publish it.
func (w *env) message(aggregate string, n int) *publish.Message {
	w.t.Helper()
	data, err := json.Marshal(license{N: n})
	if err != nil {
		w.t.Fatal(err)
	}
	id := outbox.NewID()
	body, err := json.Marshal(outbox.Envelope{Version: 1, EventID: id, OccurredAt: time.Now().UTC(), Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq++
	return &publish.Message{ID: id, Topic: topic, Body: body, Attributes: map[string]string{
		"event_id": id.String(), "event_type": "license_changed", "aggregate_type": "license", "aggregate_id": aggregate,
		"outbox_seq": strconv.FormatInt(w.seq, 10), "created_at": time.Now().UTC().Format(time.RFC3339Nano),
		"note": " kept as it is ",
	}}
}

func (w *env) publish(message *publish.Message) outbox.ID {
	w.t.Helper()
	if err := w.publisher.Publish(w.patient(), message); err != nil {
		w.t.Fatal(err)
	}
	return message.ID
}

func (w *env) emit(aggregate string, n int) outbox.ID {
	w.t.Helper()
	return w.publish(w.message(aggregate, n))
}

// consumer makes the consumer of a handler; what becomes of its messages is seen.
func (w *env) consumer(config consumer.Config,
	handle func(ctx context.Context, event *consumer.Event, payload license) error,
) *consumer.Consumer {
	w.t.Helper()
	return w.consumerOf(config, consumer.On(changed, handle))
}

// consumerOf makes the consumer of some types; what becomes of its messages is seen.
func (w *env) consumerOf(config consumer.Config, rules ...consumer.Rule) *consumer.Consumer {
	w.t.Helper()
	config.Name, config.Observe = name, w.seen.observe
	config.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(w.t.Output(), &w.log), nil))
	c, err := consumer.New(config, rules...)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run runs a loop until the test ends or calls stop, which returns what Run did.
func (w *env) run(js jetstream.JetStream, c *consumer.Consumer, concurrency int) (stop func()) {
	w.t.Helper()
	return background.Run(w.t, "the loop", func(ctx context.Context) error {
		return natsjetstream.Consume(ctx, js, c, natsjetstream.ConsumeConfig{
			Stream: stream, DeadLetters: deadLetters, Concurrency: concurrency,
		})
	})
}

// letting returns what lets handlers go on that wait for the channel to be closed. It is called at the latest before
// the loops that ran until now are stopped.
func (w *env) letting(release chan struct{}) (let func()) {
	let = sync.OnceFunc(func() { close(release) })
	w.t.Cleanup(let)
	return let
}

// info is what the server knows about the consumer.
func (w *env) info() *jetstream.ConsumerInfo {
	w.t.Helper()
	var info *jetstream.ConsumerInfo
	eventually.True(w.t, "the server tells of the consumer", func() bool {
		ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
		defer cancel()
		source, err := w.js.Consumer(ctx, stream, name)
		if err != nil {
			return false
		}
		info = source.CachedInfo()
		return true
	})
	return info
}

// done returns when the consumer has settled all that is in the stream.
func (w *env) done() {
	w.t.Helper()
	events, err := w.js.Stream(w.patient(), stream)
	if err != nil {
		w.t.Fatal(err)
	}
	last := events.CachedInfo().State.LastSeq
	eventually.True(w.t, "every message is settled", func() bool {
		info := w.info()
		return info.AckFloor.Stream >= last && info.NumAckPending == 0
	})
}

// letters are the dead letters.
func (w *env) letters() []*jetstream.RawStreamMsg {
	w.t.Helper()
	dead, err := w.js.Stream(w.patient(), deadStream)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	state := dead.CachedInfo().State
	for sequence := state.FirstSeq; sequence <= state.LastSeq && state.Msgs > 0; sequence++ {
		letter, err := dead.GetMsg(w.patient(), sequence)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, letter)
	}
	return all
}

// noLetters fails the test if there is a dead letter.
func (w *env) noLetters() {
	w.t.Helper()
	for _, letter := range w.letters() {
		w.t.Errorf("a dead letter: %v", letter.Header)
	}
}

// seen is what became of messages.
type seen struct {
	mu  sync.Mutex
	all []consumer.Observation
}

func (s *seen) observe(_ context.Context, observation consumer.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, observation)
}

// count is how often this became of an event; of any for a zero id.
func (s *seen) count(event outbox.ID, outcome consumer.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.all {
		if (event == outbox.ID{} || o.Event.ID == event) && o.Outcome == outcome {
			n++
		}
	}
	return n
}

// of is how many deliveries of an event something became of.
func (s *seen) of(event outbox.ID) (n int) {
	for _, outcome := range consumer.Outcomes {
		n += s.count(event, outcome)
	}
	return n
}

// anyEvent is for [seen.count].
var anyEvent outbox.ID
