package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// A Program is a publisher. Only Brokers is required.
type Program struct {
	// Name is the command's. Defaults to "outbox-publisher".
	Name string
	// Version is the program's. Defaults to what the build knows.
	Version string
	// Registry has the contracts that the program publishes. Defaults to those of the file that the key
	// registry.file names.
	Registry *outbox.Registry
	// NewRegistry makes the registry from the configuration, for instance from [TopicDefault] and Keys. Set it
	// or Registry, not both.
	NewRegistry func(values *config.Values) (*outbox.Registry, error)
	// Brokers are those that the keys broker and brokers choose from. With one there is nothing to choose.
	Brokers []Broker
	// Keys are the program's own.
	Keys []config.AnyKey
	// Aliases are further environment variables for keys.
	Aliases []config.Alias
	// Defaults are the program's own, by key, as the environment would have them, in place of those of the keys.
	Defaults map[string]string
	// Metrics are shown at GET /metrics of the probes' address: prometheus.New() of telemetry/prometheus. Defaults to
	// none.
	Metrics Metrics
	// Tracing sends a span of every publish somewhere: otlp.New() of daemon/otlp. Defaults to none.
	Tracing *Tracing
	// Console serves pages about the outbox: consoleserver.New() of daemon/consoleserver. Defaults to none.
	Console *Console
	// Handlers answer on the probes' address, by pattern of [http.ServeMux], for instance "GET /debug/shop".
	Handlers map[string]http.Handler

	// hangups are the SIGHUPs that Main takes.
	hangups <-chan os.Signal
	// running is the relay, once there is one; nil: nobody asks.
	running *atomic.Pointer[relay.Relay]
}

// Metrics watch a relay and answer whoever asks for them.
type Metrics interface {
	http.Handler
	// Configure is called with the configuration of the relay before it is made.
	Configure(config *relay.Config)
	// Watch is called with the relay before it runs.
	Watch(r *relay.Relay)
}

// A Broker is a kind of broker that a program can publish to.
type Broker struct {
	// Name is what the keys broker, brokers and insecure.allow call it.
	Name string
	// System is what OpenTelemetry's conventions call it. Defaults to Name.
	System string
	// Keys are the broker's own.
	Keys []config.AnyKey
	// SecretFiles are those of Keys that name a file with a secret. The log warns where everybody can read one.
	SecretFiles []config.Key[string]
	// Check says what is wrong with their values when this broker is chosen. Unless insecure is true, it refuses
	// a server on another machine without verified TLS. Defaults to nothing.
	Check func(values *config.Values, insecure bool) []config.Problem
	// Diagnose asks the broker whether everything is there that the topics need, and publishes nothing. Defaults to
	// nothing.
	Diagnose func(ctx context.Context, values *config.Values, options Options) []Finding
	// Open makes a publisher. It does not wait for the broker: one that is away comes back.
	Open func(ctx context.Context, values *config.Values, options Options) (*Connection, error)
}

// Options are what a broker is opened with besides its keys.
type Options struct {
	// Insecure allows plain text to other machines.
	Insecure bool
	// Deadline is how long the relay waits for one publish.
	Deadline time.Duration
	// Topics are those of the registry that go to this broker, sorted.
	Topics []string
	// UserAgent names the program and its version to who answers.
	UserAgent string
	// Logger takes what the connection has to say.
	Logger *slog.Logger
}

// A Connection is a broker that was opened.
type Connection struct {
	Publisher publish.Publisher
	// Ready says why nothing could be published now. Defaults to nothing: it always can.
	Ready func(context.Context) error
	// Close ends it when the relay has stopped. Defaults to nothing.
	Close func() error
}

func (p Program) withDefaults() Program {
	if p.Name == "" {
		p.Name = "outbox-publisher"
	}
	if p.Version == "" {
		p.Version = "unknown"
		if info, known := debug.ReadBuildInfo(); known && info.Main.Version != "" {
			p.Version = info.Main.Version
		}
	}
	return p
}
