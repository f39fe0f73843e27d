package main

import (
	"context"
	"log/slog"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/console/access"
)

// serveConsole shows the developer's outbox in a browser, until end is called. Without it everything else works, so
// that it cannot be shown is told and ends nothing. page is its address.
func (c *devCommand) serveConsole(ctx context.Context, config *pgx.ConnConfig, told *devTerminal) (
	page string, end func(),
) {
	if c.console == "" {
		return "", func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	end = func() { cancel(); <-served }
	page, err := c.startConsole(ctx, config, served)
	if err != nil {
		close(served)
		told.notice(dev.Notice{Bad: true, Text: "there is no console: " + err.Error()})
	}
	return page, end
}

func (c *devCommand) startConsole(ctx context.Context, config *pgx.ConnConfig, served chan<- struct{}) (string, error) {
	quiet := slog.New(slog.DiscardHandler)
	pool, err := console.PoolOf(ctx, inOwnMode(config), nil)
	if err != nil {
		return "", err
	}
	shown := console.Outbox{Name: "dev", DB: pool, Schema: c.root.schema}
	if c.contracts != nil {
		shown.Check = c.contracts.Check
	}
	handler, err := console.New(console.Config{Outboxes: []console.Outbox{shown}, Log: quiet})
	if err != nil {
		pool.Close()
		return "", err
	}
	door, err := c.open(ctx, access.User{Name: c.root.actor(""), Role: access.Admin, Payloads: true}, quiet)
	if err != nil {
		pool.Close()
		return "", err
	}
	go func() {
		defer close(served)
		defer pool.Close()
		_ = door.Serve(ctx, handler, quiet) // nobody is left to tell
	}()
	return door.Address + "/", nil
}

// open takes any port where the usual one is taken, perhaps by another outboxctl dev.
func (c *devCommand) open(ctx context.Context, user access.User, logger *slog.Logger) (*access.Door, error) {
	settings := access.Settings{Listen: c.console, Local: user}
	door, err := settings.Open(ctx, logger)
	if host, _, bad := net.SplitHostPort(c.console); err != nil && bad == nil {
		settings.Listen = net.JoinHostPort(host, "0")
		if other, again := settings.Open(ctx, logger); again == nil {
			return other, nil
		}
	}
	return door, err
}
