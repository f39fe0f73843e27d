package leaks_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/proof/leaks"
)

// mutantVariable names, in the environment of a publisher, what the one that stands in for ours tells to everybody.
const mutantVariable = "PROOF_MUTANT"

// noNap: the race detector lets a process sleep for a second before it ends, which dozens of commands would do.
const noNap = "GORACE=atexit_sleep_ms=0"

// What may be told.
const (
	mutantNone     = "nothing"
	mutantPayload  = "payload"  // logged
	mutantHeader   = "header"   // in an error of the broker, which is stored and logged
	mutantSecret   = "secret"   // in an answer of the probes' address
	mutantTelltale = "telltale" // printed at every start
)

func TestMain(m *testing.M) {
	if mutant := os.Getenv(mutantVariable); mutant != "" {
		standIn(mutant)
	}
	os.Exit(goroutines.Run(m, goroutines.Linked))
}

// standIn is a publisher that talks: everything is ours but for its broker and one handler.
func standIn(mutant string) {
	broker := natsbroker.New()
	open := broker.Open
	broker.Open = func(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
		connection, err := open(ctx, values, options)
		if err == nil {
			connection.Publisher = &talker{mutant: mutant, inner: connection.Publisher, logger: options.Logger}
		}
		return connection, err
	}
	program := daemon.Program{Brokers: []daemon.Broker{broker, pubsubbroker.New()}}
	switch mutant {
	case mutantSecret:
		program.Handlers = map[string]http.Handler{
			"GET /config": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, "%x", os.Getenv("POSTHASTE_DATABASE_URL"))
			}),
		}
	case mutantTelltale:
		fmt.Fprintln(os.Stderr, os.Environ())
	}
	daemon.Main(program)
}

type talker struct {
	mutant string
	inner  publish.Publisher
	logger *slog.Logger
}

func (t *talker) Publish(ctx context.Context, message *publish.Message) error {
	switch t.mutant {
	case mutantPayload:
		t.logger.DebugContext(ctx, "publish", slog.Any("body", message.Body)) // JSON has it as base64
	case mutantHeader:
		if name := message.Attributes["x-user"]; name != "" && message.Seq%7 == 0 {
			return &publish.TerminalError{Reason: publish.ReasonRejected, Err: fmt.Errorf("nobody is called %s here", name)}
		}
	}
	return t.inner.Publish(ctx, message)
}

// A publisher that talks is found out, wherever it does, and one that does not passes.
func TestRun(t *testing.T) {
	t.Parallel()
	outboxctl, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for mutant, want := range map[string][]string{
		mutantNone:    nil,
		mutantPayload: {"a leak: value in a payload (base64) in log: publisher-json.log"},
		mutantHeader: {
			"a leak: value of a header (plain) in log: ", "a leak: value of a header (plain) in column: outbox_dlq.error_detail",
		},
		mutantSecret: {"a leak: database password (hex) in http: GET /config of publisher 0: 200"},
		mutantTelltale: {
			"a leak: NATS password (plain) in log: publisher-text.log", "a leak: secret in a wrong setting (plain) in command: ",
		},
	} {
		t.Run(mutant, func(t *testing.T) {
			t.Parallel()
			plan := leaks.Short()
			plan.Binary, plan.Outboxctl, plan.Folder, plan.Environment = self, outboxctl, t.TempDir(),
				[]string{mutantVariable + "=" + mutant, noNap}
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
			if ok, err := report.Print(&text); err != nil || ok != (len(want) == 0) ||
				!strings.HasSuffix(text.String(), fmt.Sprintf(" ok=%t\n", ok)) {
				t.Errorf("it prints, %v:\n%s", err, &text)
			}
		})
	}
}
