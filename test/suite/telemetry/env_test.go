package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

type note struct {
	N int `json:"n"`
}

// Validate is the contract's own rule.
func (n note) Validate() error {
	if n.N < 0 {
		return errors.New("n: must not be negative")
	}
	return nil
}

// An env is an outbox, a relay with metrics, and NATS.
type env struct {
	*pgtest.DB
	t                         *testing.T
	topic                     string // has a stream
	missing                   string // has none
	placed, slow, twice, lost *outbox.ContractFor[note]
	stream                    jetstream.JetStream
	relay                     *relay.Relay
	url                       string // of /metrics
	log                       *server.Output

	mutex sync.Mutex
	gates map[string]chan struct{} // by aggregate: a publish waits until it is closed
	bad   map[string]bool          // by aggregate: the broker rejects it
	seen  map[string]map[float64]bool
}

// relayName is what the relays of the tests are called.
const relayName = "measured"

func newEnv(t *testing.T, db *pgtest.DB, change func(*relay.Config)) *env {
	t.Helper()
	name := pgtest.NewName("metrics")
	w := &env{
		DB: db, t: t, topic: name, missing: name + "_missing", log: &server.Output{},
		gates: map[string]chan struct{}{}, bad: map[string]bool{}, seen: map[string]map[float64]bool{},
	}
	w.placed = outbox.Define[note](outbox.Contract{
		Type: "order_placed", Aggregate: "order", Topic: w.topic, OnDead: outbox.OnDeadBlock,
	})
	w.slow = outbox.Define[note](outbox.Contract{
		Type: "order_slow", Aggregate: "order", Topic: w.topic, MaxAttempts: 1000,
	})
	w.twice = outbox.Define[note](outbox.Contract{Type: "order_twice", Aggregate: "order", Topic: w.topic, MaxAttempts: 2})
	w.lost = outbox.Define[note](outbox.Contract{Type: "order_lost", Aggregate: "order", Topic: w.missing})
	registry, err := outbox.NewRegistry(w.placed, w.slow, w.twice, w.lost)
	if err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.New()
	config := relay.Config{
		Database: db.URL + "&application_name=" + db.Schema, Schema: db.Schema, Registry: registry, Publisher: w.broker(),
		Name: relayName, Version: "v0.0.0-test", SurveyEvery: time.Second,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		// No test waits for the end of a lease; publishes that are held up end before that of a test's patience.
		Settings: relay.Settings{
			Lease: 10 * time.Minute, Deadline: 5 * time.Second, BaseDelay: 300 * time.Millisecond, MaxDelay: time.Second,
			Poll: 50 * time.Millisecond,
		},
	}
	if change != nil {
		change(&config)
	}
	metrics.Configure(&config)
	if w.relay, err = relay.New(config); err != nil {
		t.Fatal(err)
	}
	metrics.Watch(w.relay)
	server := httptest.NewServer(metrics)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.run()
	return w
}

// run runs the relay until the test ends.
func (w *env) run() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.relay.Run(ctx) }()
	w.t.Cleanup(func() {
		w.mutex.Lock()
		for _, gate := range w.gates {
			close(gate)
		}
		w.gates = map[string]chan struct{}{}
		w.mutex.Unlock()
		stop()
		if err := eventually.Receive(w.t, "the relay has stopped", ended); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Logf("the relay logged:\n%s", w.log.String()[max(0, len(w.log.String())-8000):])
		}
	})
}

// broker is NATS with a stream for one of the topics. It can be told to hold publishes up and to reject some: NATS
// rejects no single message for a while.
func (w *env) broker() publish.Publisher {
	t := w.t
	t.Helper()
	conn, err := natsjetstream.Connect(services.NATS(), nats.Timeout(eventually.Patience))
	if err != nil {
		t.Fatalf("%v\nIs NATS running? `make services` starts it.", err)
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	own, err := nats.Connect(services.NATS(), nats.Timeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	if w.stream, err = jetstream.New(own, jetstream.WithDefaultTimeout(eventually.Patience)); err != nil {
		t.Fatal(err)
	}
	w.makeStream(w.topic)
	return publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
		w.mutex.Lock()
		gate, bad := w.gates[message.AggregateID], w.bad[message.AggregateID]
		w.mutex.Unlock()
		if bad {
			return &publish.RejectedError{Err: errors.New("not this one")}
		}
		if gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return publisher.Publish(ctx, message)
	})
}

func (w *env) makeStream(name string) {
	w.t.Helper()
	if _, err := w.stream.CreateStream(w.t.Context(),
		jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.stream.DeleteStream(context.Background(), name) })
}

// gate holds up the publishes of an aggregate until it is opened.
func (w *env) gate(aggregateID string) (open func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	gate := make(chan struct{})
	w.gates[aggregateID] = gate
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.gates, aggregateID)
		close(gate)
	}
}

func (w *env) reject(aggregateID string, bad bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.bad[aggregateID] = bad
}

// emit writes one event of each aggregate.
func (w *env) emit(contract *outbox.ContractFor[note], aggregateIDs ...string) {
	w.t.Helper()
	err := outbox.InTx(w.t.Context(), w.Pool, func(ctx context.Context, tx pgx.Tx) error {
		for i, id := range aggregateIDs {
			if _, err := outbox.Emit(ctx, outbox.InSchema(tx, w.Schema), contract.New(id, note{N: i})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// insert writes a row past the library, as somebody might.
func (w *env) insert(eventType, aggregateID, data string) {
	w.t.Helper()
	id := outbox.NewID().String()
	payload := fmt.Sprintf(`{"version":1,"eventId":"%s","occurredAt":"2026-01-01T00:00:00Z","data":%s}`, id, data)
	w.Exec(w.t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, $2, 'order', $3, $4::text::json)`, id, eventType, aggregateID, payload)
}

// look scrapes, and remembers every value.
func (w *env) look() map[string]*family {
	w.t.Helper()
	families := scrape(w.t, w.url)
	for name, f := range families {
		if w.seen[name] == nil {
			w.seen[name] = map[float64]bool{}
		}
		for series, value := range f.series {
			if !strings.HasSuffix(series, "_sum") {
				w.seen[name][value] = true
			}
		}
	}
	return families
}

// value is that of one series, named as in name{label="value"}; false: there is none.
func value(families map[string]*family, series string) (float64, bool) {
	name, labels, _ := strings.Cut(series, "{")
	name, suffix := strings.TrimPrefix(name, "posthaste_"), ""
	for _, of := range []string{"_count", "_sum"} {
		if whole := strings.TrimSuffix(name, of); whole != name && families["posthaste_"+whole] != nil {
			name, suffix = whole, of
		}
	}
	f := families["posthaste_"+name]
	if f == nil {
		return 0, false
	}
	if labels != "" {
		labels = strings.TrimSuffix(labels, "}")
		parts := strings.Split(labels, ",")
		slices.Sort(parts)
		labels = strings.Join(parts, ",")
	}
	v, there := f.series["{"+labels+"}"+suffix]
	return v, there
}

// until waits until all of these are so. A condition is a series, a sign and a number.
func (w *env) until(conditions map[string]string) map[string]*family {
	w.t.Helper()
	var families map[string]*family
	var wrong string
	eventually.True(w.t, "the metrics are as they should be", func() bool {
		families, wrong = w.look(), ""
		for _, series := range slices.Sorted(maps.Keys(conditions)) {
			if v, there := value(families, series); !there || !holds(w.t, v, conditions[series]) {
				wrong += fmt.Sprintf("%s is %v (there: %v), want %s\n", series, v, there, conditions[series])
			}
		}
		return wrong == ""
	}, func() string { return wrong })
	return families
}

func holds(t *testing.T, v float64, condition string) bool {
	t.Helper()
	var sign string
	var want float64
	if _, err := fmt.Sscan(condition, &sign, &want); err != nil {
		t.Fatal(err)
	}
	switch sign {
	case "=":
		return v == want
	case ">":
		return v > want
	case ">=":
		return v >= want
	case "<":
		return v < want
	}
	t.Fatalf("%q is no condition", condition)
	return false
}
