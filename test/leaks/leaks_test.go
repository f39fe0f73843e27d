package leaks_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/leaks"
)

// plantVariable names, in the environment of a publisher, what the one that stands in for ours tells to everybody.
const plantVariable = "PROOF_PLANT"

// noNap: the race detector lets a process sleep for a second before it ends, which dozens of commands would do.
const noNap = "GORACE=atexit_sleep_ms=0"

// What may be told.
const (
	plantNothing  = "nothing"
	plantPayload  = "payload"  // logged
	plantHeader   = "header"   // in an error of the broker, which is stored and logged
	plantSecret   = "secret"   // in an answer of the probes' address
	plantTelltale = "telltale" // printed at every start
)

func TestMain(m *testing.M) {
	if plant := os.Getenv(plantVariable); plant != "" {
		standIn(plant)
	}
	os.Exit(calm.Run(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))) // a client library's, never ended
}

// standIn is a publisher that talks: everything is ours but for its broker and one handler.
func standIn(plant string) {
	broker := natsbroker.New()
	open := broker.Open
	broker.Open = func(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
		connection, err := open(ctx, values, options)
		if err == nil {
			connection.Publisher = &talker{plant: plant, inner: connection.Publisher, logger: options.Logger}
		}
		return connection, err
	}
	program := daemon.Program{Brokers: []daemon.Broker{broker, pubsubbroker.New()}}
	switch plant {
	case plantSecret:
		program.Handlers = map[string]http.Handler{"GET /config": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, "%x", os.Getenv("POSTHASTE_DATABASE_URL"))
		})}
	case plantTelltale:
		fmt.Fprintln(os.Stderr, os.Environ())
	}
	daemon.Main(program)
}

type talker struct {
	plant  string
	inner  relay.Publisher
	logger *slog.Logger
}

func (t *talker) Publish(ctx context.Context, message *relay.Message) error {
	switch t.plant {
	case plantPayload:
		t.logger.DebugContext(ctx, "publish", slog.Any("body", message.Body)) // JSON has it as base64
	case plantHeader:
		if name := message.Attributes["x-user"]; name != "" && message.Seq%7 == 0 {
			return &relay.TerminalError{Reason: relay.ReasonRejected, Err: fmt.Errorf("nobody is called %s here", name)}
		}
	}
	return t.inner.Publish(ctx, message)
}

// A publisher that talks is found out, wherever it does, and one that does not passes.
func TestRun(t *testing.T) {
	t.Parallel()
	outboxctl := filepath.Join(t.TempDir(), "outboxctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", outboxctl, "github.com/posthaste-dev/posthaste/cmd/outboxctl")
	build.Dir = "../../cmd"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for plant, want := range map[string][]string{
		plantNothing:  nil,
		plantPayload:  {"a leak: value in a payload (base64) in log: publisher-json.log"},
		plantHeader:   {"a leak: value of a header (plain) in log: ", "a leak: value of a header (plain) in column: outbox_dlq.error_detail"},
		plantSecret:   {"a leak: database password (hex) in http: GET /config of publisher 0: 200"},
		plantTelltale: {"a leak: NATS password (plain) in log: publisher-text.log", "a leak: secret in a wrong setting (plain) in command: "},
	} {
		t.Run(plant, func(t *testing.T) {
			t.Parallel()
			plan := leaks.Short()
			plan.Binary, plan.Outboxctl, plan.Folder, plan.Environment = self, outboxctl, t.TempDir(), []string{plantVariable + "=" + plant, noNap}
			report, err := leaks.Run(t.Context(), plan, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			problems := strings.Join(report.Problems(), "\n")
			for _, words := range want {
				if !strings.Contains(problems, words) {
					t.Errorf("not found: %s\nin:\n%s", words, problems)
				}
			}
			if len(want) == 0 && problems != "" {
				t.Error(problems)
			}
			var text strings.Builder
			if ok, err := report.Print(&text); err != nil || ok != (len(want) == 0) || !strings.HasSuffix(text.String(), fmt.Sprintf(" ok=%t\n", ok)) {
				t.Errorf("it prints, %v:\n%s", err, &text)
			}
		})
	}
}
