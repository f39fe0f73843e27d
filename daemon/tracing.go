package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/publish"
)

// Tracing sends a span of every publish somewhere.
type Tracing struct {
	// Keys are its own.
	Keys []config.AnyKey
	// Check says what is wrong with their values. Unless insecure is true, it refuses a server on another machine
	// without verified TLS. Defaults to nothing.
	Check func(values *config.Values, insecure bool) []config.Problem
	// Open returns the publisher that traces this one, and what sends the last spans when the relay has stopped; nil
	// and nil when nothing is to be traced. It does not wait for anybody.
	Open func(ctx context.Context, values *config.Values, publisher publish.Publisher,
		options TracingOptions) (publish.Publisher, func(), error)
}

// TracingOptions are what tracing is opened with besides its keys.
type TracingOptions struct {
	// Program and Version are the program's, and Instance tells it from others that run the same; it may be empty.
	Program, Version, Instance string
	// System is the broker, as OpenTelemetry's conventions call it.
	System string
	// Logger takes what goes wrong.
	Logger *slog.Logger
}

// allowTracing is what insecure.allow calls it.
const allowTracing = "tracing"

func (p Program) tracingKeys() []config.AnyKey {
	if p.Tracing == nil {
		return nil
	}
	return p.Tracing.Keys
}

func (p Program) checkTracing(values *config.Values) []config.Problem {
	if p.Tracing == nil || p.Tracing.Check == nil {
		return nil
	}
	return p.Tracing.Check(values, allowsInsecure(values, allowTracing))
}

// trace returns the publisher that traces this one, or this one.
func (p *publisher) trace(ctx context.Context, broker Broker, plain publish.Publisher) (publish.Publisher, error) {
	if p.program.Tracing == nil {
		return plain, nil
	}
	traced, end, err := p.program.Tracing.Open(ctx, p.values, plain, TracingOptions{
		Program: p.program.Name, Version: p.program.Version, Instance: relayName.Get(p.values),
		System: cmp.Or(broker.System, broker.Name), Logger: p.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	if traced == nil {
		return plain, nil
	}
	p.endTracing = append(p.endTracing, end)
	return traced, nil
}
