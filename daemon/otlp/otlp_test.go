package otlp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(leakCheck{m}) }

// leakCheck waits for goroutines that were told to end: goleak itself looks for half a second, which may be too little
// on a busy machine.
type leakCheck struct{ *testing.M }

func (c leakCheck) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > time.Minute {
			break // and fail
		}
	}
	return code
}

const canary = "hunter2"

func load(t *testing.T, insecure bool, environ ...string) (*config.Values, error) {
	t.Helper()
	set := config.Set{Prefix: "POSTHASTE_", Keys: New().Keys, Check: func(values *config.Values) []config.Problem {
		return check(values, insecure)
	}}
	return set.Load(nil, environ)
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	const needsTLS = "is not on this machine: write https://"
	for endpoint, problem := range map[string]string{
		"": "", "http://127.0.0.1:4318": "", "http://localhost:4318/custom": "", "https://collector.example.com": "",
		"http://[::1]:4318":                 "",
		"http://collector.example.com:4318": "collector.example.com " + needsTLS + "collector.example.com:4318",
		"http://localhost.example.com":      needsTLS,
		"grpc://127.0.0.1:4317":             "must be a URL", "127.0.0.1:4318": "must be a URL", "https://": "must be a URL",
		"https://x/?key=" + canary:   "must be a URL",
		"https://u:" + canary + "@x": "tracing.headers",
	} {
		_, err := load(t, false, "POSTHASTE_TRACING_ENDPOINT="+endpoint)
		if problem == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	values, err := load(t, true, "POSTHASTE_TRACING_ENDPOINT=http://collector.example.com:4318")
	if err != nil {
		t.Fatal(err)
	}
	if to, err := collector(values, true); err != nil || to != "http://collector.example.com:4318/v1/traces" {
		t.Errorf("spans go to %q, %v", to, err)
	}
}

func TestHeadersAreASecret(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]int{
		"api-key=" + canary: 1, "a=b, c=d=e": 2, "authorization=Bearer " + canary + ",x=": 2, canary: -1, "a b=c": -1,
		"=x": -1, "a=b,": -1,
	} {
		values, err := load(t, false, "POSTHASTE_TRACING_HEADERS="+given)
		if (want < 0) != (err != nil) || err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", given, err)
		}
		if err != nil {
			continue
		}
		if all, _ := headersOf(values); len(all) != want || strings.Contains(values.Show(), canary) {
			t.Errorf("%q became %v\n%s", given, all, values.Show())
		}
	}
}

// standIn takes spans as a collector does.
type standIn struct {
	*httptest.Server
	mutex   sync.Mutex
	spans   []*tracepb.Span
	service []string
	path    string
	key     string
	status  int
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	c := &standIn{status: http.StatusOK}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	body, _ := io.ReadAll(r.Body)
	var request collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.path, c.key = r.URL.Path, r.Header.Get("Api-Key")
	for _, resource := range request.GetResourceSpans() {
		for _, attribute := range resource.GetResource().GetAttributes() {
			c.service = append(c.service, attribute.GetKey()+"="+attribute.GetValue().GetStringValue())
		}
		for _, scope := range resource.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	w.WriteHeader(c.status)
}

// inBubble runs a test whose clock stands still while anybody waits for the network: an end has three seconds for what
// is left, and a busy machine may need longer.
func inBubble(t *testing.T, test func(t *testing.T, c *standIn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newStandIn(t)) })
}

// send sends so many messages through a tracing publisher, and ends it.
func send(t *testing.T, log io.Writer, messages []map[string]string, environ ...string) {
	t.Helper()
	values, err := load(t, false, environ...)
	if err != nil {
		t.Fatal(err)
	}
	publisher, end, err := open(t.Context(), values, publish.PublisherFunc(func(context.Context, *publish.Message) error {
		return errors.New(canary)
	}), daemon.TracingOptions{
		Program: "outbox-publisher", Version: "v1", Instance: "a", System: "nats",
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil || publisher == nil {
		t.Fatalf("%v, %v", publisher, err)
	}
	for _, headers := range messages {
		_ = publisher.Publish(t.Context(), &publish.Message{
			ID: outbox.NewID(), Topic: "orders", Body: []byte(canary), AggregateID: canary, Attributes: headers,
		})
	}
	end()
}

const sampled, notSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

// What a collector gets: spans with their links, who sent them, and nothing of what events say.
func TestACollectorGetsSpans(t *testing.T) { //nolint:paralleltest // the SDK's error handler is one for all
	inBubble(t, collectorGetsSpans)
}

func collectorGetsSpans(t *testing.T, c *standIn) {
	t.Helper()
	var log bytes.Buffer
	send(t, &log, []map[string]string{{"traceparent": sampled}, {"traceparent": notSampled}, {}},
		"POSTHASTE_TRACING_ENDPOINT="+c.URL, "POSTHASTE_TRACING_HEADERS=api-key="+canary, "POSTHASTE_TRACING_SAMPLE=0")
	if len(c.spans) != 1 || c.path != "/v1/traces" || c.key != canary {
		t.Fatalf("%d spans at %s, key %q\n%s", len(c.spans), c.path, c.key, log.String())
	}
	span := c.spans[0]
	if span.GetName() != "send orders" || len(span.GetLinks()) != 1 || span.GetKind() != tracepb.Span_SPAN_KIND_CLIENT ||
		strings.Contains(span.String(), canary) {
		t.Errorf("the span is %s", span)
	}
	about := strings.Join(c.service, " ")
	if !strings.Contains(about, "service.name=outbox-publisher") || !strings.Contains(about, "service.instance.id=a") ||
		!strings.Contains(about, "service.version=v1") {
		t.Errorf("the resource is %s", about)
	}
	if strings.Contains(log.String(), canary) || !strings.Contains(log.String(), "publishes are traced") {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestEventsWithoutATraceAreSampled(t *testing.T) { //nolint:paralleltest // as above
	// That one of ten is none of 200 has a chance of less than one in a billion, and that it is half of them none at all.
	for oneOf, want := range map[string][2]int{"0": {0, 0}, "1": {200, 200}, "10": {1, 100}} {
		inBubble(t, func(t *testing.T, c *standIn) {
			send(t, io.Discard, make([]map[string]string, 200), "POSTHASTE_TRACING_ENDPOINT="+c.URL,
				"POSTHASTE_TRACING_SAMPLE="+oneOf)
			if got := len(c.spans); got < want[0] || got > want[1] {
				t.Errorf("one of %s: %d of 200 spans", oneOf, got)
			}
		})
	}
}

// A collector that refuses is told once, and costs the publishes nothing.
func TestACollectorThatRejects(t *testing.T) { //nolint:paralleltest // as above
	inBubble(t, collectorRejects)
}

func collectorRejects(t *testing.T, c *standIn) {
	t.Helper()
	c.status = http.StatusForbidden
	var log bytes.Buffer
	send(t, &log, make([]map[string]string, 1500), "POSTHASTE_TRACING_ENDPOINT="+c.URL, "POSTHASTE_TRACING_SAMPLE=1",
		"POSTHASTE_TRACING_HEADERS=api-key="+canary)
	if said := strings.Count(log.String(), "traces are lost; events are not") + strings.Count(log.String(),
		"the last traces are lost"); said < 1 || said > 2 || strings.Contains(log.String(), canary) {
		t.Errorf("it was told %d times:\n%s", said, log.String())
	}
}

func TestOffByDefault(t *testing.T) {
	t.Parallel()
	values, err := load(t, false)
	if err != nil {
		t.Fatal(err)
	}
	if publisher, end, err := open(t.Context(), values, publish.PublisherFunc(nil), daemon.TracingOptions{}); publisher !=
		nil || end != nil || err != nil {
		t.Errorf("got %v, %v", publisher, err)
	}
}
