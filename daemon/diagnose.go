package daemon

import (
	"context"
	"log/slog"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// A Finding is something about a broker that keeps events from arriving there, or will.
type Finding struct {
	// Broker is its name. [Program.Diagnose] and [Program.TestTopics] set it.
	Broker string
	// Code is one of those that docs/operate/doctor.md lists.
	Code string
	// Text says what is wrong.
	Text string
	// Fix is a command that ends it; empty: there is none, and Advice says what to do.
	Fix, Advice string
}

// Configuration is what [Program.Run] would be configured with. An error that is a *[config.Error] says everything
// that is wrong with it.
func (p Program) Configuration(args, environ []string) (*config.Values, error) {
	found, err := p.withDefaults().load(args, environ)
	if err != nil {
		return nil, err
	}
	return found.values, nil
}

// Diagnose asks the brokers of a configuration whether everything is there that their topics need. It publishes
// nothing. The error is about the configuration.
func (p Program) Diagnose(ctx context.Context, args, environ []string) (findings []Finding, err error) {
	p = p.withDefaults()
	found, err := p.load(args, environ)
	if err != nil {
		return nil, err
	}
	for _, broker := range found.brokers() {
		options := found.optionsOf(broker, p, slog.New(slog.DiscardHandler))
		findings = append(findings, broker.diagnose(ctx, found.values, options)...)
	}
	return findings, nil
}

// diagnose asks one broker.
func (b Broker) diagnose(ctx context.Context, values *config.Values, options Options) (findings []Finding) {
	if b.Diagnose != nil {
		findings = b.Diagnose(ctx, values, options)
	}
	for i := range findings {
		findings[i].Broker = b.Name
	}
	return findings
}

// Database is the URL and the schema of a configuration, for programs beside a publisher.
func Database(values *config.Values) (url config.Hidden, schema string) {
	return databaseURL.Get(values), databaseSchema.Get(values)
}
