package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// The states of events, by their numbers.
const (
	ready = iota
	retrying
	parked
	waiting
	deadBlocking
	dead
	published
	discarded
)

type note struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

// Validate is the contract's own rule.
func (n note) Validate() error {
	if n.N < 0 {
		return errors.New("n: must not be negative")
	}
	return nil
}

var (
	placed = outbox.Define[note](outbox.Contract{
		Type: "order_placed", Aggregate: "order", Topic: "orders", OnDead: outbox.OnDeadBlock,
	})
	annotated = outbox.Define[note](outbox.Contract{Type: "order_noted", Aggregate: "order", Topic: "orders"})
	limited   = outbox.Define[note](outbox.Contract{
		Type: "order_limited", Aggregate: "order", Topic: "orders", OnDead: outbox.OnDeadBlock, MaxAttempts: 2,
	})
	shipped = outbox.Define[note](outbox.Contract{Type: "order_shipped", Aggregate: "order", Topic: "orders"})
	billed  = outbox.Define[note](outbox.Contract{Type: "order_billed", Aggregate: "order", Topic: "bills"})
	charged = outbox.Define[note](outbox.Contract{
		Type: "card_charged", Aggregate: "card", Topic: "bills", Namespace: "billing",
	})
	raw = outbox.Define[json.RawMessage](outbox.Contract{Type: "order_raw", Aggregate: "order", Topic: "orders"})
)

// contracts is all of them.
var contracts = []outbox.AnyContract{placed, annotated, limited, shipped, billed, charged, raw}

func registry(t testing.TB, contracts ...outbox.AnyContract) *outbox.Registry {
	t.Helper()
	r, err := outbox.NewRegistry(contracts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An env is an outbox, a broker, and what the relays between them have logged.
type env struct {
	*pgtest.DB
	broker  *broker
	logs    *logs
	control measure.Control // of the relays that are started
}

func onEach(t *testing.T, test func(t *testing.T, p *env)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		p := &env{DB: db, broker: newBroker(), logs: &logs{}}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the relays logged:\n%s", p.logs.tail(8000))
			}
		})
		test(t, p)
	})
}

// A run is a relay that runs.
type run struct {
	*relay.Relay
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// settings are short times, so that what must be waited for comes soon. No machine stands still for as long as a lease:
// tests that want its end say so, see expire.
func settings() relay.Settings {
	return relay.Settings{
		Batch: 100, Lease: time.Minute, Poll: 100 * time.Millisecond, Drain: time.Minute,
		BaseDelay: 20 * time.Millisecond, MaxDelay: 200 * time.Millisecond,
	}
}

// start runs a relay until the test ends, or stop.
func (p *env) start(t testing.TB, name string, change ...func(*relay.Config)) *run {
	t.Helper()
	r := p.launch(t, name, change...)
	t.Cleanup(func() {
		if err := r.stop(t); err != nil {
			t.Errorf("relay %s: %v", name, err)
		}
	})
	return r
}

// launch is start for relays that may end with an error.
func (p *env) launch(t testing.TB, name string, change ...func(*relay.Config)) *run {
	t.Helper()
	config := relay.Config{
		Database: named(t, p.URL, name), Schema: p.Schema, Registry: registry(t, contracts...), Publisher: p.broker.as(name),
		Name:   name,
		Logger: slog.New(slog.NewJSONHandler(p.logs, nil)), Settings: settings(),
	}
	for _, change := range change {
		change(&config)
	}
	made, err := relay.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(measure.With(context.Background(), p.control))
	r := &run{Relay: made, name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = made.Run(ctx)
	}()
	t.Cleanup(func() { _ = r.stop(t) })
	return r
}

// stop ends the relay as a deployment does, and returns what Run returned.
func (r *run) stop(t testing.TB) error {
	t.Helper()
	r.cancel()
	eventually.Receive(t, "relay "+r.name+" has stopped", r.done)
	return r.err
}

// named gives the sessions of a URL a name, by which they can be found and ended.
func named(t testing.TB, address, name string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set("application_name", name)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// through leads a relay's sessions through a proxy.
func through(t testing.TB, x *proxy.Proxy) func(*relay.Config) {
	t.Helper()
	return func(config *relay.Config) {
		config.Database = x.Through(t, config.Database)
	}
}

func with(change func(*relay.Settings)) func(*relay.Config) {
	return func(config *relay.Config) { change(&config.Settings) }
}

// emit writes events in one transaction.
func (p *env) emit(t testing.TB, events ...outbox.Event) []outbox.ID {
	t.Helper()
	ids := make([]outbox.ID, len(events))
	for i := range events {
		ids[i] = outbox.NewID()
		events[i].ID = ids[i]
	}
	if err := p.tryEmit(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	return ids
}

// tryEmit is emit for goroutines, which must not end the test.
func (p *env) tryEmit(ctx context.Context, events ...outbox.Event) error {
	return outbox.InTx(ctx, p.Pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), events...)
		return err
	})
}

// insert writes a row past the library, as somebody might. {id} in the payload is the event's id.
func (p *env) insert(t testing.TB, eventType, aggregateType, aggregateID, payload string) outbox.ID {
	t.Helper()
	id := outbox.NewID()
	p.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, $2, $3, $4, $5::text::json)`, id.String(), eventType, aggregateType, aggregateID,
		strings.ReplaceAll(payload, "{id}", id.String()))
	return id
}

// A row is the delivery state of an event.
type row struct {
	state, attempts int
	lastError       string
	publishedAt     *time.Time
	dueIn           time.Duration // by the server's clock; zero without a next attempt
}

func (p *env) row(t testing.TB, id outbox.ID) row {
	t.Helper()
	var r row
	var due *float64
	err := p.Pool.QueryRow(t.Context(), p.SQL(`SELECT coalesce(h.kind, e.state), e.attempt_count,
		coalesce(e.last_error, ''), e.published_at, extract(epoch FROM h.due - clock_timestamp())::float8
		FROM {schema}.outbox_events e LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
		WHERE e.id = $1::text::uuid`),
		id.String()).Scan(&r.state, &r.attempts, &r.lastError, &r.publishedAt, &due)
	if err != nil {
		t.Fatal(err)
	}
	if due != nil {
		r.dueIn = time.Duration(*due * float64(time.Second))
	}
	return r
}

func (p *env) inState(t testing.TB, state int) int {
	t.Helper()
	return p.Count(t, "SELECT count(*) FROM {schema}.outbox_events e WHERE "+states.Of+" = $1", state)
}

// awaitPublished waits until so many events are published, and no event is in any other state.
func (p *env) awaitPublished(t testing.TB, n int) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d published events", n), func() bool { return p.inState(t, published) >= n })
	if all := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); all != n {
		t.Errorf("%d of %d events are published", n, all)
	}
}

// awaitState waits until an event has the state, and returns its row.
func (p *env) awaitState(t testing.TB, id outbox.ID, state int) row {
	t.Helper()
	eventually.True(t, fmt.Sprintf("state %d", state), func() bool { return p.row(t, id).state == state })
	return p.row(t, id)
}

// chargedEvents counts the events that were charged with an attempt.
func (p *env) chargedEvents(t testing.TB) int {
	t.Helper()
	return p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0")
}

// wantDelivered checks what holds without a crash: each event once, in order, one at a time, nobody charged.
func (p *env) wantDelivered(t testing.TB) {
	t.Helper()
	if twice := p.broker.twice(); len(twice) > 0 {
		t.Errorf("%d events were delivered twice: %v", len(twice), twice[:min(3, len(twice))])
	}
	p.wantInOrder(t)
}

// wantInOrder checks what holds whatever happens.
func (p *env) wantInOrder(t testing.TB) {
	t.Helper()
	if wrong := p.broker.outOfOrder(); len(wrong) > 0 {
		t.Errorf("out of order: %v", wrong)
	}
	if p.broker.overlaps > 0 {
		t.Errorf("%d times two events of one aggregate were in flight", p.broker.overlaps)
	}
	if n := p.chargedEvents(t); n > 0 {
		t.Errorf("%d events were charged with an attempt", n)
	}
}

// terminate ends the server's side of all sessions with this name.
func (p *env) terminate(t testing.TB, name string) int {
	t.Helper()
	return p.Count(t,
		"SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1) ended",
		name)
}

// logs has what relays have logged, one JSON object a line.
type logs struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(line)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.String()
}

// tail is the end of it, without the lanes' comings and goings.
func (l *logs) tail(n int) string {
	var text strings.Builder
	for line := range strings.Lines(l.text()) {
		if !strings.Contains(line, `"msg":"lane`) {
			text.WriteString(line)
		}
	}
	return text.String()[max(0, text.Len()-n):]
}

// lines lists the lines that have this value under this key.
func (l *logs) lines(t testing.TB, key, value string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.text()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("a line of the log is not JSON: %v", err)
		}
		if fields[key] == value {
			found = append(found, fields)
		}
	}
	return found
}
