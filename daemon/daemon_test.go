package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/retention"
)

// canary is a secret that nobody may see.
const canary = "hunter2"

var orderCreated = outbox.Define[map[string]any](outbox.Contract{
	Type: "order_created", Aggregate: "order", Topic: "orders",
})

// inProcess is a program whose broker is a function of this process.
func inProcess(t *testing.T, ready error) Program {
	t.Helper()
	registry, err := outbox.NewRegistry(orderCreated)
	if err != nil {
		t.Fatal(err)
	}
	return Program{Registry: registry, Version: "v1", Brokers: []Broker{{
		Name: "here",
		Open: func(context.Context, *config.Values, Options) (*Connection, error) {
			return &Connection{
				Publisher: publish.PublisherFunc(func(context.Context, *publish.Message) error { return nil }),
				Ready:     func(context.Context) error { return ready },
			}, nil
		},
	}}}.withDefaults()
}

// nowhere is a database that nobody answers for.
const nowhere = "POSTHASTE_DATABASE_URL=postgres://relay:" + canary + "@127.0.0.1:1/shop"

// execute runs one command line, and fails if it shows the secret.
func execute(t *testing.T, p Program, args []string, environ ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = p.execute(t.Context(), args, environ, &out, &log)
	if all := out.String() + log.String(); strings.Contains(all, canary) {
		t.Errorf("the secret is shown:\n%s", all)
	}
	return code, out.String(), log.String()
}

func TestEverythingThatIsWrongIsToldAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	registry := filepath.Join(folder, "registry.yaml")
	if err := os.WriteFile(registry, []byte("contracts:\n  - type: order_created\n    aggregates: order\n"), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	p := inProcess(t, nil)
	p.Registry = nil
	p.Brokers = append(p.Brokers, Broker{
		Name: "there", Check: func(values *config.Values, insecure bool) []config.Problem {
			return []config.Problem{values.Problem(InsecureAllow, "there is insecure: %v", insecure)}
		},
	})
	code, _, stderr := execute(t, p, []string{
		"run", "--relay-poll=20s", "--relay-batch=0", "--retention-batch", "7", "--http-listen=8086",
	},
		"POSTHASTE_DATABASE_URL=postgres://relay:"+canary+"@db.example.com/shop",
		"POSTHASTE_DATABASE_LISTEN_URL=postgres://relay:"+canary+"@[broken",
		"POSTHASTE_BROKER=there", "POSTHASTE_REGISTRY_FILE="+registry, "POSTHASTE_RELAY_BACH=1",
		"POSTHASTE_INSECURE_ALLOW=thre,there")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"POSTHASTE_RELAY_BACH is not known; did you mean POSTHASTE_RELAY_BATCH?",
		"POSTHASTE_DATABASE_URL: database.url: db.example.com is not on this machine: add sslmode=verify-full",
		"database.listen_url: must be a URL",
		"flag --relay-poll: relay.poll: 20s, must be at least 1 ms and at most a third of the lease (30s)",
		"flag --relay-batch: relay.batch: must not be 0",
		"flag --retention-batch: retention.batch: 7, must be between 100 and 5000",
		`flag --http-listen: http.listen: "8086": must be an address`,
		`insecure.allow: "thre": must be some of database, here, there; did you mean there?`,
		"there is insecure: true",
		registry + ":3: ",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("not told: %s\nin:\n%s", want, stderr)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := inProcess(t, nil)
	p.Registry, p.Brokers = nil, append(p.Brokers, Broker{Name: "there"})
	code, _, stderr := execute(t, p, nil)
	if code != exitUsage || !strings.Contains(stderr, "database.url: is missing") ||
		!strings.Contains(stderr, "broker: is missing") ||
		!strings.Contains(stderr, "registry.file: is missing") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	newRegistry := func(*config.Values) (*outbox.Registry, error) { return &outbox.Registry{}, nil }
	for want, p := range map[string]Program{
		"has no broker": {}, "one of them": {Brokers: p.Brokers, Registry: &outbox.Registry{}, NewRegistry: newRegistry},
	} {
		if code, _, stderr := execute(t, p.withDefaults(), nil); code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	p := inProcess(t, nil)
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{args: "version", stdout: "outbox-publisher v1\n"},
		{args: "--help", stdout: "usage: outbox-publisher"},
		{
			args:   "config show --relay-batch=7",
			stdout: "relay.batch                 7                                     flag --relay-batch",
		},
		{args: "config docs", stdout: "# Configuration of outbox-publisher\n"},
		{args: "config", code: exitUsage, stderr: "usage: outbox-publisher"},
		{args: "runn", code: exitUsage, stderr: "usage: outbox-publisher"},
		{args: "health --http-listen=127.0.0.1:1", code: exitFailed, stderr: "ask the publisher"},
		{args: "health --http-listen=", code: exitFailed, stderr: "nobody answers probes"},
		{args: "health --http-listen=x", code: exitUsage, stderr: "http.listen"},
		{args: "health --http-lsten=x", code: exitUsage, stderr: "did you mean --http-listen?"},
	} {
		code, stdout, stderr := execute(t, p, strings.Fields(c.args), nowhere)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// The names of the keys in a system that had a publisher before.
func TestAliases(t *testing.T) {
	t.Parallel()
	p := inProcess(t, nil)
	p.Registry = nil
	p.NewRegistry = func(values *config.Values) (*outbox.Registry, error) {
		if TopicDefault.Get(values) != "shop-events" {
			return nil, errors.New("the registry was made without the topic")
		}
		return outbox.NewRegistry(orderCreated)
	}
	p.Aliases = []config.Alias{
		{Variable: "ACME_OUTBOX_PUBLISH_BATCH_SIZE", Key: "relay.batch"},
		{Variable: "ACME_OUTBOX_PUBLISH_POLL_MS", Key: "relay.poll", Unit: time.Millisecond},
		{Variable: "ACME_OUTBOX_MAX_ATTEMPTS", Key: "relay.max_attempts"},
		{Variable: "ACME_PUBSUB_DOMAIN_TOPIC", Key: "topic.default"},
	}
	environ := []string{
		nowhere, "ACME_OUTBOX_PUBLISH_BATCH_SIZE=50", "ACME_OUTBOX_PUBLISH_POLL_MS=250",
		"ACME_OUTBOX_MAX_ATTEMPTS=25",
		// the last one is the consumers'
		"ACME_PUBSUB_DOMAIN_TOPIC=shop-events", "ACME_EVENTING_IDEMPOTENCY_TTL=720h",
	}
	found, err := p.load(nil, environ)
	if err != nil {
		t.Fatal(err)
	}
	if s := relaySettings(found.values); s.Batch != 50 || s.Poll != 250*time.Millisecond || s.MaxAttempts != 25 ||
		found.registry == nil {
		t.Errorf("the settings are %+v", s)
	}
	if _, err := p.load(nil, environ[:4]); err == nil || !strings.Contains(err.Error(), "made without the topic") {
		t.Errorf("the registry's error is lost: %v", err)
	}
}

// The defaults of the keys are those of the relay: RL-12.
func TestDefaultsAreTheRelays(t *testing.T) {
	t.Parallel()
	found, err := inProcess(t, nil).load(nil, []string{nowhere})
	if err != nil {
		t.Fatal(err)
	}
	want := relay.Settings{
		Batch: 500, MaxBytes: 64 << 20, Concurrency: 256, Poll: 500 * time.Millisecond, Lease: 30 * time.Second,
		Drain:       20 * time.Second,
		MaxAttempts: 10, BaseDelay: time.Second, MaxDelay: 300 * time.Second, UnknownTypeMaxAge: 24 * time.Hour,
		FailoverWindow: 10 * time.Minute,
	}
	if got := relaySettings(found.values); got != want {
		t.Errorf("got %+v", got)
	}
	if got := retentionConfig(found.values); !reflect.DeepEqual(got, retention.Config{
		Schema: "public", Published: 720 * time.Hour, Dead: 2160 * time.Hour, Dedupe: 720 * time.Hour, Every: time.Hour,
		Batch: 1000,
	}) {
		t.Errorf("got %+v", got)
	}
	for flag, on := range map[string]bool{"--retention-every=1h": true, "--retention-every=0s": false} {
		found, err := inProcess(t, nil).load([]string{flag}, []string{nowhere})
		if err != nil {
			t.Fatal(err)
		}
		p := &publisher{loaded: found}
		if err := p.prepareRetention(); err != nil || (p.retention != nil) != on {
			t.Errorf("%s: retention is on %t, %v", flag, p.retention != nil, err)
		}
	}
	found, err = inProcess(t, nil).load([]string{"--retention-dead=0s", "--retention-confirmed=2026-01-31T00:00:00Z"},
		[]string{nowhere})
	if err != nil {
		t.Fatal(err)
	}
	if got := retentionConfig(found.values); got.Dead >= 0 || got.Confirmed.Year() != 2026 {
		t.Errorf("got %+v", got)
	}
}

// logged is a log that several goroutines use.
type logged struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

func (l *logged) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

var addressPattern = regexp.MustCompile(`"address":"([^"]+)"`)

// start runs a program until the test ends, and returns where it answers probes. stop ends it and returns its error.
func start(t *testing.T, p Program, args ...string) (address string, log *logged, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log = &logged{}
	ended := make(chan error, 1)
	go func() {
		ended <- p.Run(ctx, append([]string{"--http-listen=127.0.0.1:0"}, args...), []string{nowhere}, log)
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return fmt.Errorf("the program has not ended after %s", patience)
		}
	})
	t.Cleanup(func() { _ = stop() })
	until(t, "the address of the probes in the log", func() bool { return addressPattern.MatchString(log.String()) })
	return addressPattern.FindStringSubmatch(log.String())[1], log, stop
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// An outage at the start is an outage: the publisher lives, is not ready, says why, and stops when asked.
func TestWithoutAnyServer(t *testing.T) {
	t.Parallel()
	p := inProcess(t, errors.New("nobody \x1b[31mis there"))
	p.Handlers = map[string]http.Handler{"GET /metrics": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "up 1\n")
	})}
	address, log, stop := start(t, p)
	if status, body := get(t, "http://"+address+"/livez"); status != http.StatusOK {
		t.Errorf("livez: %d %s", status, body)
	}
	if status, body := get(t, "http://"+address+"/readyz"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "[-] database: cannot be reached") ||
		!strings.Contains(body, "[-] broker: here: nobody is there") || strings.Contains(body, "[+]") {
		t.Errorf("readyz: %d\n%s", status, body)
	}
	_, body := get(t, "http://"+address+"/readyz?verbose")
	for _, line := range []string{
		"[+] topics: none is paused", "[+] operators: have paused nothing", "[+] relay: 0 lanes",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("readyz?verbose:\n%s", body)
		}
	}
	if _, body := get(t, "http://"+address+"/metrics"); body != "up 1\n" {
		t.Errorf("metrics: %s", body)
	}
	if status, _ := get(t, "http://"+address+"/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("pprof is answered with %d", status)
	}
	code, stdout, _ := execute(t, p, []string{"health", "--live", "--http-listen=" + address}, nowhere)
	if code != exitDone || stdout != "ok\n" {
		t.Errorf("health --live: exit code %d, %s", code, stdout)
	}
	if code, stdout, _ := execute(t, p, []string{"health", "--http-listen", address}, nowhere); code != exitFailed ||
		!strings.Contains(stdout, "[-] database") {
		t.Errorf("health: exit code %d, %s", code, stdout)
	}
	// It is asked by people and images that do not know the whole configuration.
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("http: {listen: \""+address+"\"}\nrelay: {btch: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args    []string
		environ string
		code    int
	}{
		{[]string{"health", "--live", "--config=" + file}, "", exitDone},
		{[]string{"health", "--live"}, "POSTHASTE_CONFIG=" + file, exitDone},
		{[]string{"health", "--live"}, "POSTHASTE_HTTP_LISTEN=" + address, exitDone},
		{[]string{"health", "--live", "--config=/no/file", "--http-listen=" + address}, "POSTHASTE_NO_KEY=1", exitDone},
		{[]string{"health", "--live", "--config=/no/file"}, "", exitUsage},
	} {
		if code, stdout, stderr := execute(t, p, c.args, c.environ); code != c.code {
			t.Errorf("%v with %q: exit code %d, want %d\n%s%s", c.args, c.environ, code, c.code, stdout, stderr)
		}
	}
	const outage = "the database cannot be used yet"
	until(t, "the outage in the log", func() bool { return strings.Contains(log.String(), outage) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	// The program's end waits a second for its log, and a busy machine may need longer.
	const end = "the publisher has stopped"
	until(t, "the last words of the log", func() bool { return strings.Contains(log.String(), end) })
	for _, want := range []string{
		`"msg":"the publisher starts"`, "postgres://***@127.0.0.1:1/shop", outage, "draining", end,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), canary) {
		t.Errorf("the secret is in the log:\n%s", log)
	}
}

// A loop that stands still is seen, and nothing else makes /livez fail.
func TestStuck(t *testing.T) {
	t.Parallel()
	r, err := relay.New(relay.Config{Database: "x", Registry: &outbox.Registry{}, Publisher: nobody})
	if err != nil {
		t.Fatal(err)
	}
	for stuckAfter, want := range map[time.Duration]int{time.Hour: http.StatusOK, -1: http.StatusServiceUnavailable} {
		p := &probes{publisher: &publisher{relay: r}, stuckAfter: stuckAfter}
		answer := newRecorder()
		p.live(answer, nil)
		if answer.status != want {
			t.Errorf("stuck after %s: %d %s", stuckAfter, answer.status, answer.body.String())
		}
	}
}

type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func newRecorder() *recorder                           { return &recorder{header: http.Header{}} }
func (r *recorder) Header() http.Header                { return r.header }
func (r *recorder) WriteHeader(status int)             { r.status = status }
func (r *recorder) Write(text []byte) (n int, _ error) { return r.body.Write(text) }

func TestWhatDoesNotStart(t *testing.T) {
	t.Parallel()
	p := inProcess(t, nil)
	address, _, _ := start(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), patience) // what starts all the same does not run forever
	defer cancel()
	err := p.Run(ctx, []string{"--http-listen=" + address}, []string{nowhere}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "http.listen") {
		t.Errorf("an address that is taken: %v", err)
	}
	p.Handlers = map[string]http.Handler{"GET /livez": http.NotFoundHandler()}
	if err := p.Run(ctx, []string{"--http-listen=127.0.0.1:0"}, []string{nowhere}, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "Handlers") {
		t.Errorf("a handler that is there already: %v", err)
	}
	p.Handlers = nil
	p.Brokers[0].Open = func(context.Context, *config.Values, Options) (*Connection, error) {
		return nil, errors.New("no such file")
	}
	const reason = "here: no such file"
	log := &logged{}
	code := p.execute(ctx, nil, []string{nowhere}, io.Discard, log)
	until(t, "the reason in the log", func() bool { return strings.Contains(log.String(), reason) })
	if code != exitFailed || strings.Count(log.String(), reason) != 1 {
		t.Errorf("a broker that cannot be opened: exit code %d\n%s", code, log.String())
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		":8086": "127.0.0.1:8086", "0.0.0.0:8086": "127.0.0.1:8086", "[::]:8086": "[::1]:8086", "127.0.0.1:1": "127.0.0.1:1",
		"10.0.0.7:80": "10.0.0.7:80", "localhost:80": "localhost:80",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// A reader who does not read stops nothing, and is told what he missed.
func TestASlowReaderOfTheLog(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	l := newLines(writer, func(to io.Writer) slog.Handler { return slog.NewJSONHandler(to, nil) })
	const more = 10
	for range mostLines + more + 1 { // one may be with the goroutine that writes
		if _, err := l.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if dropped := l.dropped.Load(); dropped < more {
		t.Errorf("%d lines were dropped", dropped)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		l.close(10 * time.Millisecond)
	}()
	receive(t, "the end, though nobody reads", closed)
	select {
	case <-l.ended:
		t.Error("all was written, though nobody reads")
	default:
	}
	var text bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&text, reader)
	}()
	receive(t, "the last line", l.ended)
	_ = writer.Close()
	receive(t, "the reader's end", read)
	if !strings.Contains(text.String(), "lines of the log were dropped") ||
		strings.Count(text.String(), "line\n") < mostLines {
		t.Errorf("the reader got %d bytes, the last: %s", text.Len(), text.String()[max(0, text.Len()-200):])
	}
}
