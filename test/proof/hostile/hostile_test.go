package hostile

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func TestMain(m *testing.M) {
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

func servers() Servers {
	return Servers{PostgresURL: services.Postgres18(), NATSURL: services.NATS(), PubSubAddr: services.PubSub()}
}

// few are inputs of every kind: refused, delivered, dead, parked, and failed by the publisher.
func few(name string) bool {
	switch name {
	case "json/NaN", "json/same key twice", "envelope/row: version zero", "broker/row: header Nats-Rollup",
		"around/row: event type that nobody knows", "time/row: due after time", "time/row: due in 1970",
		"errors/row: refused for good with a DSN", "errors/row: refused for now with colours", "errors/row: panic with text":
		return true
	}
	return false
}

// fewer are what the mutants need.
func fewer(name string) bool {
	return name == "json/same key twice" || name == "envelope/row: version zero" ||
		name == "errors/row: refused for now with colours"
}

func runFew(t *testing.T, change func(*Plan)) *Report {
	t.Helper()
	plan := Plan{Servers: servers(), Only: few}
	change(&plan)
	report, err := Run(t.Context(), plan, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestGoodRelaysPass(t *testing.T) {
	t.Parallel()
	report := runFew(t, func(*Plan) {})
	for _, problem := range report.Problems() {
		t.Error(problem)
	}
	if len(report.inputs) != 10 || report.tried != 20 {
		t.Errorf("%d inputs were tried %d times", len(report.inputs), report.tried)
	}
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, figure := range []string{
		" tried=20 refused=2 delivered=5 dead=9 parked=4 sum_ok=true ", " panics=0 ", " canaries=0 ", " ok=true\n",
	} {
		if !strings.Contains(printed.String(), figure) {
			t.Errorf("no %q in %s", figure, printed.String())
		}
	}
}

// faulty is a publisher that does one event wrong.
type faulty struct {
	publish.Publisher
	publish func(ctx context.Context, inner publish.Publisher, message *publish.Message) error
}

func (b faulty) Publish(ctx context.Context, message *publish.Message) error {
	if bytes.Contains(message.Body, []byte(`{"a":1,"a":2}`)) { // json/same key twice
		return b.publish(ctx, b.Publisher, message)
	}
	return b.Publisher.Publish(ctx, message)
}

func publisher(send func(ctx context.Context, inner publish.Publisher, message *publish.Message) error) func(*Plan) {
	return func(plan *Plan) {
		plan.Wrap = func(inner publish.Publisher) publish.Publisher { return faulty{inner, send} }
	}
}

// changed publishes a copy of the message that was changed.
func changed(change func(message *publish.Message)) func(*Plan) {
	return publisher(func(ctx context.Context, inner publish.Publisher, message *publish.Message) error {
		altered := *message
		altered.Attributes = maps.Clone(message.Attributes)
		change(&altered)
		return inner.Publish(ctx, &altered)
	})
}

// trigger makes the table change what a relay writes, as one would that does not do it right.
func trigger(assign string) func(*Plan) {
	return func(plan *Plan) {
		plan.Spoil = func(_ context.Context, exec func(string) error, schema string) error {
			for _, statement := range []string{
				`CREATE FUNCTION {schema}.spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + assign + `; RETURN NEW; END $$`,
				`CREATE TRIGGER spoil BEFORE UPDATE ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION {schema}.spoil()`,
			} {
				if err := exec(strings.ReplaceAll(statement, "{schema}", `"`+schema+`"`)); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// The proof must see each of these.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for name, mutant := range map[string]struct {
		apply func(*Plan)
		finds string
		// Where what is waited for never comes.
		patience, reading time.Duration
	}{
		"panics": {
			finds: "the publisher panicked on",
			apply: publisher(func(context.Context, publish.Publisher, *publish.Message) error {
				panic("bug")
			}),
		},
		"alters the body": {
			finds: "json/same key twice on nats: the body was changed", apply: changed(func(message *publish.Message) {
				message.Body = bytes.Replace(message.Body, []byte(`"a":1,`), nil, 1)
			}),
		},
		"alters an attribute": {
			finds: `the attribute "note" was`, apply: changed(func(message *publish.Message) {
				message.Attributes["note"] = "other"
			}),
		},
		"adds an attribute": {
			finds: "attributes became", apply: changed(func(message *publish.Message) { message.Attributes["more"] = "x" }),
		},
		"loses it": {finds: "published, and the broker does not have it", reading: time.Second, apply: publisher(
			func(context.Context, publish.Publisher, *publish.Message) error { return nil })},
		"hangs": {finds: "json/same key twice on pubsub: stuck", patience: time.Second, apply: func(plan *Plan) {
			plan.Lease = time.Hour // after two deadlines of a usual one it would be dead
			publisher(func(ctx context.Context, _ publish.Publisher, _ *publish.Message) error {
				<-ctx.Done()
				return ctx.Err()
			})(plan)
		}},
		"stops the route": {
			finds: "good event behind json/same key twice on nats: it has not arrived", patience: time.Second, apply: stopping,
		},
		"holds up the route": {finds: "controls came through meanwhile", apply: func(plan *Plan) {
			plan.Within, plan.Trips = 500*time.Millisecond, 5
			holdingUp(plan)
		}},
		"settles the error as it was": {finds: "leaks", apply: trigger(
			`IF NEW.last_error LIKE 'rejected%' THEN NEW.last_error := 'rejected: postgres://app:` + secret + `@db/x'; END IF`)},
		"settles control characters": {finds: "it has control characters", apply: trigger(
			`IF NEW.last_error LIKE 'rejected%' THEN NEW.last_error := 'rejected: ' || chr(27) || '[31m'; END IF`)},
		"dead without a word": {
			finds: "dead after 2 attempts of", apply: trigger(`IF NEW.state IN (1, 5) THEN NEW.last_error := NULL; END IF`),
		},
		"takes it back": {
			finds: "and its state is 5",
			apply: trigger(`IF NEW.state = 6 THEN NEW.state := 5; NEW.published_at := NULL; END IF`),
		},
		"other fate": {finds: "must be dead invalid_payload", apply: func(plan *Plan) {
			plan.Spoil = func(_ context.Context, exec func(string) error, schema string) error {
				return exec(`ALTER TABLE "` + schema + `".outbox_events ADD CHECK (payload_json ->> 'version' <> '0')`)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := runFew(t, func(plan *Plan) {
				plan.Only, plan.Patience, plan.Reading = fewer, mutant.patience, mutant.reading
				mutant.apply(plan)
			})
			found := strings.Join(report.Problems(), "\n")
			if report.OK() || !strings.Contains(found, mutant.finds) {
				t.Errorf("want %q in:\n%s", mutant.finds, found)
			}
		})
	}
}

// stopping is a publisher that publishes nothing any more once it has met the event.
func stopping(plan *Plan) {
	plan.Wrap = func(inner publish.Publisher) publish.Publisher {
		var once sync.Once
		stopped := make(chan struct{})
		return publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
			if bytes.Contains(message.Body, []byte(`{"a":1,"a":2}`)) {
				once.Do(func() { close(stopped) })
			}
			select {
			case <-stopped:
				<-ctx.Done()
				return ctx.Err()
			default:
				return inner.Publish(ctx, message)
			}
		})
	}
}

// holdingUp is a publisher that, once it has met the event, keeps the next one until it is certainly late: for as long
// as a good event may take, and until so many controls came through on each broker. One more may have begun before.
func holdingUp(plan *Plan) {
	came := map[Broker]*atomic.Int64{NATS: {}, PubSub: {}}
	plan.Came = func(on Broker) { came[on].Add(1) }
	enough := int64(plan.Trips + 1)
	plan.Wrap = func(inner publish.Publisher) publish.Publisher {
		var met, over atomic.Bool
		held := sync.OnceValue(func() (until map[Broker]int64) {
			return map[Broker]int64{NATS: came[NATS].Load() + enough, PubSub: came[PubSub].Load() + enough}
		})
		return publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
			if bytes.Contains(message.Body, []byte(`{"a":1,"a":2}`)) {
				met.Store(true)
				return inner.Publish(ctx, message)
			}
			if met.Load() && !over.Load() {
				until, err := held(), wait.For(ctx, plan.Within)
				for err == nil && (came[NATS].Load() < until[NATS] || came[PubSub].Load() < until[PubSub]) {
					err = wait.For(ctx, 10*time.Millisecond)
				}
				if err != nil {
					return err
				}
				over.Store(true)
			}
			return inner.Publish(ctx, message)
		})
	}
}

// A good event is late if controls came through while it waited, and not because the machine stood still.
func TestLateIsLaterThanControls(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for name, c := range map[string]struct {
		took, trip time.Duration
		arrives    bool
		late       bool
	}{
		"in time": {took: 2 * time.Second, trip: 10 * time.Millisecond, arrives: true},
		"too late": {
			took: 2001 * time.Millisecond, trip: 10 * time.Millisecond, arrives: true, late: true,
		},
		"slow, as everything":          {took: 4 * time.Second, trip: 50 * time.Millisecond, arrives: true},
		"slow, and more than all is":   {took: 6 * time.Second, trip: 50 * time.Millisecond, arrives: true, late: true},
		"the machine stood still":      {took: 10 * time.Second, trip: 6 * time.Second, arrives: true},
		"never, on any machine at all": {trip: 6 * time.Second, late: true},
	} {
		report := newReport(nil, Plan{Within: 2 * time.Second, Trips: 50})
		for at := time.Duration(0); at < 20*time.Second; at += 2 * c.trip {
			report.controls[NATS].trips = append(report.controls[NATS].trips, trip{began.Add(at), began.Add(at + c.trip)})
		}
		o, g := &outlet{broker: NATS, arrivals: newArrivals()}, good{event: event{id: outbox.NewID()}, committing: began}
		if c.arrives {
			o.arrivals.add(began.Add(c.took), nil, map[string]string{"event_id": g.id.String()})
		}
		report.addGood("x", o, g, "")
		if (report.late == 1) != c.late || report.OK() == c.late {
			t.Errorf("%s: late is %d: %v", name, report.late, report.Problems())
		}
	}
}

// A log that forgot what must not be said, or said it in two lines.
func TestLogsAreChecked(t *testing.T) {
	t.Parallel()
	for line, finds := range map[string]string{
		`{"level":"INFO","error":"fine"}`:                            "",
		`{"level":"INFO","msg":"` + secret + `"}`:                    "the log has 1 canaries",
		`{"level":"INFO","error":"c4n4ry"}`:                          "the log has 1 canaries",
		`{"level":"INFO","aggregate_id":"c4n4ry"}`:                   "",
		`{"level":"INFO","error":"a\u001b[2J"}`:                      "it has control characters",
		`{"level":"INFO","event_type":"` + strings.Repeat("x", 3000): "not JSON",
		`{"error":"` + strings.Repeat("x", 3000) + `"}`:              "it has 3000 characters",
		`{"event_type":"` + strings.Repeat("x", 3000) + `"}`:         "event_type has 3000 characters",
		`{"event_id":"1","error":"the publisher panicked: x"}`:       "the publisher panicked on 1",
		`{"event_id":"planned","error":"the publisher panicked: x"}`: "",
		"level=INFO msg=x": "not JSON",
		`{"level":"INFO","msg":"x"}` + "\n" + `forged`: "not JSON",
	} {
		o := &outlet{logs: &logBook{}}
		_, _ = o.logs.Write([]byte(line + "\n"))
		report := newReport(nil, Plan{})
		report.addLog(o, map[string]bool{"planned": true})
		if found := strings.Join(report.Problems(), "\n"); (found == "") != (finds == "") || !strings.Contains(found, finds) {
			t.Errorf("%.80q: want %q, found %q", line, finds, found)
		}
	}
}

// A run that tried too little, or lost count, is no proof.
func TestTooLittleIsNoProof(t *testing.T) {
	t.Parallel()
	report := newReport(nil, Plan{})
	report.tried = 1
	report.finish()
	found := strings.Join(report.Problems(), "\n")
	for _, want := range []string{
		"do not add up to 1", "0 inputs, want 400", "group errors has 0 inputs", "nothing was parked", "0 controls on nats",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in %s", want, found)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	plain, troubled, _ := all()
	seen := map[string]bool{}
	for _, in := range append(plain, troubled...) {
		if seen[in.name] {
			t.Errorf("%s is there twice", in.name)
		}
		seen[in.name] = true
	}
}
