package daemon

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// Console serves pages about the outbox, on an address of its own.
type Console struct {
	// Keys are its own.
	Keys []config.AnyKey
	// Check says what is wrong with their values. Defaults to nothing.
	Check func(values *config.Values) []config.Problem
	// Open opens the address, and returns what serves there until its context ends; nil: nobody wants a console.
	Open func(ctx context.Context, values *config.Values, options ConsoleOptions) (
		serve func(context.Context) error, err error)
}

// ConsoleOptions are what a console is opened with besides its keys.
type ConsoleOptions struct {
	// Database is how the outbox's database is reached, BeforeConnect to be called before every connection.
	Database      *pgx.ConnConfig
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
	Schema        string
	// Registry has the contracts, Document the same as registry.file has them; nil where the registry is compiled in.
	Registry *outbox.Registry
	Document *contracts.Document
	Logger   *slog.Logger
}

func (p Program) consoleKeys() []config.AnyKey {
	if p.Console == nil {
		return nil
	}
	return p.Console.Keys
}

func (p Program) checkConsole(values *config.Values) []config.Problem {
	if p.Console == nil || p.Console.Check == nil {
		return nil
	}
	return p.Console.Check(values)
}

// openConsole opens its address, so that one which is taken is told at the start. What it returns serves there.
func (p *publisher) openConsole(ctx context.Context) (serve func(context.Context), err error) {
	if p.program.Console == nil {
		return func(context.Context) {}, nil
	}
	console, err := p.program.Console.Open(ctx, p.values, ConsoleOptions{
		Database: p.database.Config().ConnConfig, BeforeConnect: p.beforeConnect, Schema: databaseSchema.Get(p.values),
		Registry: p.registry, Document: p.document(), Logger: p.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if console == nil {
		return func(context.Context) {}, nil
	}
	return func(ctx context.Context) {
		// Nothing is published by it: events go out without a console as well.
		if err := console(ctx); err != nil {
			p.logger.ErrorContext(ctx, "the console is no longer served", slog.String("error", err.Error()))
		}
	}, nil
}

// document has the contracts as a console compares them with what was emitted; nil: nobody can write them down, and it
// does without.
func (p *publisher) document() *contracts.Document {
	if p.file == nil {
		return nil
	}
	document, err := p.file.Contracts()
	if err != nil {
		return nil
	}
	return &document
}
