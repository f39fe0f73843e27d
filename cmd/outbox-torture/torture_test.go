package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "relay" { // a process of a relay, of a test's run
		main()
	}
	os.Exit(m.Run())
}

func address(variable, otherwise string) string {
	if given := os.Getenv(variable); given != "" {
		return given
	}
	return otherwise
}

var (
	postgres18 = address("SERVICES_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable")
	postgres15 = address("SERVICES_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable")
	natsURL    = address("SERVICES_NATS_URL", "nats://127.0.0.1:14222")
	emulator   = address("SERVICES_PUBSUB_ADDR", "127.0.0.1:18085")
)

func connect(t *testing.T, server string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 5 * time.Minute

// small is a run that takes few connections of a server that others use as well.
var small = []string{"-relays", "2", "-producers", "4", "-seed", "1"}

// role makes a plain role in a database of its own, and returns the address as it.
func role(t *testing.T, server, name string, create bool) string {
	t.Helper()
	conn := connect(t, server)
	name = fmt.Sprintf("%s_%d", name, os.Getpid())
	exec(t, conn, "CREATE ROLE "+name+" LOGIN")
	exec(t, conn, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		exec(t, conn, "DROP DATABASE "+name+" WITH (FORCE)")
		exec(t, conn, "DROP ROLE "+name)
	})
	if create {
		exec(t, conn, "GRANT CREATE ON DATABASE "+name+" TO "+name)
	}
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	at.User, at.Path = url.User(name), "/"+name
	return at.String()
}

// shared is a writer for several goroutines that a test reads while they write.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// outcome is what a run printed, and its exit code.
type outcome struct {
	code           int
	stdout, stderr *shared
}

func play(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	o := outcome{stdout: &shared{}, stderr: &shared{}}
	o.code = command(ctx, args, o.stdout, o.stderr)
	t.Logf("exit code %d\n%s\n%s", o.code, o.stderr, o.stdout)
	return o
}

// leavesNothing looks for what a run has to remove.
func leavesNothing(t *testing.T, server, said string) {
	t.Helper()
	_, after, found := strings.Cut(said, "create the schema ")
	if !found {
		t.Fatal("it does not say what it creates")
	}
	schema, _, _ := strings.Cut(after, " ")
	var exists bool
	if err := connect(t, server).QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)",
		schema).Scan(&exists); err != nil {
		t.Fatal(err)
	}
	if exists {
		t.Errorf("schema %s is left", schema)
	}
	conn, err := nats.Connect(natsURL, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := js.Stream(ctx, schema); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("stream %s is left, or nobody knows: %v", schema, err)
	}
}

// A run on the user's own server, as a role that may create a schema and nothing else.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, server, broker string }{
		{"torture15", postgres15, natsURL},
		{"torture18", postgres18, "pubsub://torture?emulator=" + emulator},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := role(t, c.server, c.name, true)
			report := filepath.Join(t.TempDir(), "report.md")
			o := play(t.Context(), t, "-postgres", server, "-broker", c.broker, "-duration", "15s", "-rate", "60",
				"-producers", "4", "-seed", "1", "-report", report, "-v")
			if o.code != fine {
				t.Error("it does not pass")
			}
			for _, want := range []string{"GOOD: ", "outbox-torture events=", " lost=0 ", " ok=true"} {
				if !strings.Contains(o.stdout.String(), want) {
					t.Errorf("it does not say %q", want)
				}
			}
			leavesNothing(t, server, o.stderr.String())
			text, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"GOOD: ", "| kill | ", "| backend_terminated | ", "| lost | 0 | must be 0", "## When",
			} {
				if !bytes.Contains(text, []byte(want)) {
					t.Errorf("the report does not say %q:\n%s", want, text)
				}
			}
			if tables, _, _ := bytes.Cut(text, []byte("## When")); bytes.Contains(tables, []byte("|  |")) {
				t.Errorf("something in the report has no words:\n%s", text)
			}
		})
	}
}

// A publisher with a bug must not pass.
func TestABugIsFound(t *testing.T) {
	t.Parallel()
	// It hits one event in about fifty. That it is none of a thousand has a chance of two in a billion.
	args := []string{"-postgres", postgres18, "-broker", natsURL, "-duration", "10s", "-rate", "100", "-mutant", "drop"}
	o := play(t.Context(), t, slices.Concat(small, args)...)
	if o.code != broken || !strings.Contains(o.stdout.String(), "BROKEN: lost: ") ||
		!strings.Contains(o.stdout.String(), " ok=false") {
		t.Error("it was not found")
	}
	_, after, found := strings.Cut(o.stdout.String(), "the histories are in ")
	folder, _, _ := strings.Cut(after, "\n")
	if entries, err := os.ReadDir(folder); !found || err != nil || len(entries) == 0 {
		t.Errorf("the histories are not kept: %v", err)
	}
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	leavesNothing(t, postgres18, o.stderr.String())
}

// Ctrl-C ends the run early, and everything is removed.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	o := outcome{stdout: &shared{}, stderr: &shared{}}
	ended := make(chan int, 1)
	go func() {
		args := []string{"-postgres", postgres15, "-broker", natsURL, "-duration", "10m", "-rate", "50"}
		ended <- command(ctx, slices.Concat(small, args), o.stdout, o.stderr)
	}()
	tick, tooLong := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !strings.Contains(o.stderr.String(), "events, ") { // it is under way
		select {
		case code := <-ended:
			t.Fatalf("it ended by itself, with %d:\n%s", code, o.stderr)
		case <-tooLong:
			t.Fatalf("it is not under way after %s:\n%s", patience, o.stderr)
		case <-tick.C:
		}
	}
	interrupt()
	select {
	case code := <-ended:
		if code != couldNot || !strings.Contains(o.stderr.String(), "interrupted") {
			t.Errorf("exit code %d:\n%s", code, o.stderr)
		}
	case <-time.After(patience):
		t.Fatalf("it does not end:\n%s", o.stderr)
	}
	leavesNothing(t, postgres15, o.stderr.String())
}

func TestWhatItDoesNotRunOn(t *testing.T) {
	t.Parallel()
	poor := role(t, postgres18, "torture_poor", false)
	readOnly := postgres18 + "&default_transaction_read_only=on"
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing is said", nil, "say which database"},
		{"no broker", []string{"-postgres", postgres18}, "say which broker"},
		{"not a URL", []string{"-postgres", "host=127.0.0.1 password=secret", "-broker", natsURL}, "-postgres is not a URL"},
		{
			"a database elsewhere",
			[]string{"-postgres", "postgres://u:secret@db.example.com/app", "-broker", natsURL},
			"db.example.com: not on this machine",
		},
		{
			"a broker elsewhere",
			[]string{"-postgres", postgres18, "-broker", "nats://nats.example.com:4222"},
			"nats.example.com: not on this machine",
		},
		{
			"Google itself",
			[]string{"-postgres", postgres18, "-broker", "pubsub://my-project"},
			"project my-project of Google Cloud: not on this machine",
		},
		{"a role that may not create", []string{"-postgres", poor, "-broker", natsURL}, "GRANT CREATE ON DATABASE"},
		{"a role that may not write", []string{"-postgres", readOnly, "-broker", natsURL}, "default_transaction_read_only"},
		{
			"nobody there",
			[]string{"-postgres", "postgres://u:secret@127.0.0.1:1/app", "-broker", natsURL},
			"does not let us in",
		},
		{"too many connections", []string{"-postgres", postgres18, "-broker", natsURL, "-relays", "1000"}, "room for"},
		{"one relay", []string{"-postgres", postgres18, "-broker", natsURL, "-relays", "1"}, "at least 2"},
		{"no time", []string{"-postgres", postgres18, "-broker", natsURL, "-duration", "1s"}, "at least 10s"},
		{
			"an unknown mutant",
			[]string{"-postgres", postgres18, "-broker", natsURL, "-mutant", "slip"},
			`no mutant is called "slip"`,
		},
		{"an unknown broker", []string{"-postgres", postgres18, "-broker", "carrier://127.0.0.1"}, "none of the schemes"},
		{"nobody at the broker", []string{"-postgres", postgres18, "-broker", "nats://127.0.0.1:1"}, "connect to NATS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := play(t.Context(), t, c.args...)
			if o.code != couldNot || !strings.Contains(o.stderr.String(), c.want) {
				t.Errorf("exit code %d, and it does not say %q", o.code, c.want)
			}
			if strings.Contains(o.stderr.String()+o.stdout.String(), "secret") {
				t.Error("it shows a password")
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	o := play(t.Context(), t, "-h")
	if o.code != fine || !strings.Contains(o.stdout.String(), "outbox-torture -postgres") ||
		!strings.Contains(o.stdout.String(), "-report") {
		t.Error("it does not help")
	}
}
