// Package otlp lets a daemon send its traces to a collector that speaks OTLP over HTTP.
//
// A collector that is away costs traces and never an event: spans wait in a bounded queue, and what has no room is
// dropped. Besides the keys, the variables OTEL_* of OpenTelemetry's SDK are heard, as in every program that has it.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	upstream "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/internal/loopback"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
)

const (
	// sayPeriod is the least time between two lines of the log about a collector that does not take spans.
	sayPeriod = 30 * time.Second
	// lastSpans is how long a stop waits for the collector to take what is left.
	lastSpans = 3 * time.Second
	// defaultPath is where a collector takes traces.
	defaultPath = "/v1/traces"
)

var (
	endpoint = config.Text("tracing.endpoint", config.Spec[string]{
		Otherwise: "none: nothing is traced", Example: "https://collector.example.com:4318",
		Doc: "The collector that takes spans by OTLP over HTTP; without a path it is `" + defaultPath +
			"`. On another machine it needs `https://`.",
	})
	headers = config.Secret("tracing.headers", config.Spec[config.Hidden]{
		Doc: "What the collector wants to see in every request, a key for instance: `name=value`, with commas between.",
	})
	sample = config.Integer("tracing.sample", config.Spec[int]{
		Default: 100, Check: config.Between(0, 1_000_000_000),
		Doc: "One span for each so many events that came without a trace: 1 is all, 0 none. Those with a trace follow its " +
			"own decision.",
	})
)

// New is tracing for a [daemon.Program]. It is off unless the key tracing.endpoint is set.
func New() *daemon.Tracing {
	return &daemon.Tracing{Keys: []config.AnyKey{endpoint, headers, sample}, Check: check, Open: open}
}

func check(values *config.Values, insecure bool) (problems []config.Problem) {
	if _, err := collector(values, insecure); err != nil {
		problems = append(problems, values.Problem(endpoint, "%v", err))
	}
	if _, err := headersOf(values); err != nil {
		problems = append(problems, values.Problem(headers, "%v", err))
	}
	return problems
}

// collector is the URL that spans go to, or "".
func collector(values *config.Values, insecure bool) (string, error) {
	text := endpoint.Get(values)
	if text == "" {
		return "", nil
	}
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.RawQuery != "" || address.Fragment != "" ||
		address.Scheme != "http" && address.Scheme != "https" {
		return "", errors.New("must be a URL such as https://collector.example.com:4318")
	}
	if address.User != nil {
		return "", errors.New("must not have a user or a password: give what the collector wants to see with tracing.headers")
	}
	if host := address.Hostname(); address.Scheme == "http" && !insecure && !loopback.Is(host) {
		return "", fmt.Errorf("%s is not on this machine: write https://%s; or allow plain text with insecure.allow: tracing",
			host, address.Host)
	}
	if address.Path == "" || address.Path == "/" {
		address.Path = defaultPath
	}
	return address.String(), nil
}

// headersOf takes the headers apart. Its errors quote nothing.
func headersOf(values *config.Values) (map[string]string, error) {
	all := map[string]string{}
	if headers.Get(values).Reveal() == "" {
		return all, nil
	}
	for pair := range strings.SplitSeq(headers.Get(values).Reveal(), ",") {
		name, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if !found || name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return nil, errors.New("must be name=value, with commas between")
		}
		all[name] = value
	}
	return all, nil
}

func open(ctx context.Context, values *config.Values, publisher publish.Publisher,
	options daemon.TracingOptions,
) (publish.Publisher, func(), error) {
	to, err := collector(values, true) // it was checked
	if err != nil || to == "" {
		return nil, nil, err
	}
	given, err := headersOf(values)
	if err != nil {
		return nil, nil, err
	}
	// it does not connect
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithHeaders(given))
	if err != nil {
		return nil, nil, fmt.Errorf("the exporter: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName(options.Program), semconv.ServiceVersion(options.Version),
		semconv.ServiceInstanceID(options.Instance)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// the SDK has no other place for what its queue meets
	upstream.SetErrorHandler(&complaints{ctx: ctx, logger: options.Logger})
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about),
		trace.WithSampler(trace.ParentBased(root(sample.Get(values)))))
	options.Logger.InfoContext(ctx, "publishes are traced", slog.String("endpoint", to))
	return otel.Publisher(publisher, otel.Config{System: options.System, Provider: provider}), func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := provider.Shutdown(ending); err != nil {
			options.Logger.WarnContext(ctx, "the last traces are lost", slog.String("error", err.Error()))
		}
	}, nil
}

// root decides about events that came without a trace.
func root(oneOf int) trace.Sampler {
	if oneOf == 0 {
		return trace.NeverSample()
	}
	return trace.TraceIDRatioBased(1 / float64(oneOf))
}

// complaints logs what goes wrong with spans, now and then.
type complaints struct {
	ctx    context.Context //nolint:containedctx // for the log alone
	logger *slog.Logger
	mutex  sync.Mutex
	saidAt time.Time
}

// Handle is called by the SDK, from goroutines of its own.
func (c *complaints) Handle(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Since(c.saidAt) < sayPeriod {
		return
	}
	c.saidAt = time.Now()
	c.logger.WarnContext(c.ctx, "traces are lost; events are not", slog.String("error", err.Error()))
}
