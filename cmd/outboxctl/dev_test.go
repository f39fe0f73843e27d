package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
)

// A devRun is `outboxctl dev -o ndjson` at work.
type devRun struct {
	stop   context.CancelFunc
	ended  chan int
	events chan string // closed at the end of what it prints
	mutex  sync.Mutex
	said   bytes.Buffer
	ready  chan struct{}
	once   sync.Once
}

func (r *devRun) Write(text []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.said.Write(text)
	if strings.Contains(r.said.String(), "Ctrl-C ends it.") {
		r.once.Do(func() { close(r.ready) })
	}
	return len(text), nil
}

func (r *devRun) stderr() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.said.String()
}

func (e *env) dev(t *testing.T, args ...string) *devRun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	r := &devRun{stop: stop, ended: make(chan int, 1), events: make(chan string, 100), ready: make(chan struct{})}
	go func() {
		defer close(r.events)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			r.events <- lines.Text()
		}
	}()
	go func() {
		code := execute(ctx, append(args, "--schema", e.schema), writer, r, func(name string) string {
			return map[string]string{"DATABASE_URL": e.url}[name]
		})
		_ = writer.Close()
		r.ended <- code
	}()
	t.Cleanup(func() {
		stop()
		_ = reader.Close()
		r.code(t)
	})
	return r
}

// code is how it ended, once it has been stopped.
func (r *devRun) code(t *testing.T) int {
	t.Helper()
	select {
	case code := <-r.ended:
		r.ended <- code
		return code
	case <-time.After(patience):
		t.Errorf("it does not end\n%s", r.stderr())
		return -1
	}
}

// wait ends when the relay delivers.
func (r *devRun) wait(t *testing.T) {
	t.Helper()
	select {
	case <-r.ready:
	case code := <-r.ended:
		r.ended <- code
		t.Fatalf("it ended with %d\n%s", code, r.stderr())
	case <-time.After(patience):
		t.Fatalf("it is not ready\n%s", r.stderr())
	}
}

func (r *devRun) next(t *testing.T) (event dev.Delivered) {
	t.Helper()
	select {
	case line, more := <-r.events:
		if !more {
			t.Fatalf("no more events\n%s", r.stderr())
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatalf("no event comes\n%s", r.stderr())
	}
	return event
}

// TestDevDeliversEveryType on a schema that has no table yet: from the command, from SQL, known before or not.
func TestDevDeliversEveryType(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.schema += "_dev"
		t.Cleanup(func() {
			_, err := e.pool.Exec(context.Background(), e.sql("DROP SCHEMA IF EXISTS {schema} CASCADE"))
			if err != nil {
				t.Error(err)
			}
		})
		r := e.dev(t, "dev", "-o", "ndjson")
		r.wait(t)
		want := func(eventType, aggregate, data string) {
			t.Helper()
			got := r.next(t)
			topic, _, _ := strings.Cut(aggregate, "/")
			if got.Type != eventType || got.Aggregate != aggregate || got.Topic != topic || string(got.Data) != data {
				t.Errorf("got %+v", got)
			}
		}
		code, _, stderr := e.call(t, "emit", "order_created", "--aggregate", "order/1", "--data", `{"total":12.5}`)
		if code != exitDone || stderr != "" {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		want("order_created", "order/1", `{"total":12.5}`)
		if code, _, stderr := e.call(t, "emit", "never_seen", "--aggregate", "thing/7"); code != exitDone || stderr != "" {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		want("never_seen", "thing/7", "{}")
		e.exec(t, "SELECT {schema}.outbox_emit('from_sql', 'thing', '8', '{}')")
		want("from_sql", "thing/8", "{}")
		r.stop()
		if code := r.code(t); code != exitDone {
			t.Errorf("exit code %d", code)
		}
		for _, text := range []string{
			"✓ connected to PostgreSQL 1", " migrations in ", "✓ relay ready: events of every type",
			`outboxctl emit order_created --aggregate order/1 --data '{"total":12.5}' --schema ` + e.schema,
			`never_seen is a new type`, "stopped; 3 events delivered",
		} {
			if !strings.Contains(r.stderr(), text) {
				t.Errorf("%q is not said:\n%s", text, r.stderr())
			}
		}
		if alive := e.text(t, "SELECT count(*)::text FROM {schema}.outbox_relays WHERE ended_at IS NULL"); alive != "0" {
			t.Errorf("%s relays have not left", alive)
		}
	})
}

// TestDevTakesNobodysEvents: where another relay publishes, what is printed would be missing there.
func TestDevTakesNobodysEvents(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, `INSERT INTO {schema}.outbox_relays (id, token, name) VALUES
			(gen_random_uuid(), gen_random_uuid(), 'publisher-7')`)
		code, _, stderr := e.call(t, "dev")
		if code != exitFailed || !strings.Contains(stderr, "for instance publisher-7") ||
			!strings.Contains(stderr, "--yes-take-events") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		app := e.as(t, "app")
		code, _, stderr = (&env{url: app.url, pool: e.pool, schema: e.schema + "_none"}).call(t, "dev")
		if code != exitNotLetIn || !strings.Contains(stderr, "connect as the owner of the database") {
			t.Errorf("no right: exit code %d\n%s", code, stderr)
		}
		r := e.dev(t, "dev", "--yes-take-events", "-o", "ndjson")
		r.wait(t)
		r.stop()
	})
}

// TestDevLooksBeforeItChanges: an older outbox of somebody stays as it is, also where its relays are forgotten; one in
// which only a developer was is taken.
func TestDevLooksBeforeItChanges(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		if code, _, stderr := e.call(t, "migrate", "down", "--target", "7"); code != exitDone {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		e.exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
		code, _, stderr := e.call(t, "dev")
		if code != exitFailed || !strings.Contains(stderr, "there are events in this outbox") ||
			!strings.Contains(stderr, "--yes-take-events") {
			t.Errorf("forgotten relays: exit code %d\n%s", code, stderr)
		}
		e.exec(t, `INSERT INTO {schema}.outbox_relays (id, token, name) VALUES
			(gen_random_uuid(), gen_random_uuid(), 'publisher-7')`)
		if code, _, stderr := e.call(t, "dev"); code != exitFailed || !strings.Contains(stderr, "instance publisher-7") {
			t.Errorf("a relay: exit code %d\n%s", code, stderr)
		}
		if version := e.text(t, "SELECT schema_version::text FROM {schema}.outbox_meta"); version != "7" {
			t.Errorf("it was migrated to %s", version)
		}
		e.exec(t, "UPDATE {schema}.outbox_relays SET name = 'outboxctl dev', ended_at = now()")
		r := e.dev(t, "dev", "-o", "ndjson")
		r.wait(t)
		if got := r.next(t); got.Type != "order_created" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestAnEventIsOneLine of the terminal, whatever is in it.
func TestAnEventIsOneLine(t *testing.T) {
	t.Parallel()
	event := dev.Delivered{
		At: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Topic: "order", Type: "order_created", Aggregate: "order/1\x1b[2J",
		Data: []byte("{\"text\":\n\"ünïcode and more and more\"}"), LatencyMillis: 12.4,
	}
	p := present.New(io.Discard, present.Table, false)
	for width, want := range map[int]string{
		0:  `03:04:05.006  order  order_created  order/1  {"text": "ünïcode and more and more"}  12 ms`,
		60: `03:04:05.006  order  order_created  order/1  {"text"…  12 ms`,
		20: `03:04:05.006  order  order_created  order/1  …  12 ms`,
	} {
		if got := eventLine(p, width, event); got != want {
			t.Errorf("%d columns:\n%s\n%s", width, got, want)
		}
	}
}

// TestDevNamesATypeThatItKnows: what it says to try is delivered, and not parked.
func TestDevNamesATypeThatItKnows(t *testing.T) {
	t.Parallel()
	contract := func(eventType, aggregate string) outbox.AnyContract {
		return outbox.Define[struct{}](outbox.Contract{Type: eventType, Aggregate: aggregate, Topic: "t", MaxBytes: 100})
	}
	for want, contracts := range map[string][]outbox.AnyContract{
		"a_first of thing":       {contract("b_second", "other"), contract("a_first", "thing")},
		"order_created of sales": {contract("a_first", "thing"), contract("order_created", "sales")},
	} {
		registry, err := outbox.NewRegistry(contracts...)
		if err != nil {
			t.Fatal(err)
		}
		if got := exampleEvent(registry); got.eventType+" of "+got.aggregate != want {
			t.Errorf("it names %+v, want %s", got, want)
		}
	}
	if got := exampleEvent(nil); got.eventType != "order_created" || got.aggregate != "order" {
		t.Errorf("where every type is known it names %+v", got)
	}
}
