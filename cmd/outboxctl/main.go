// Command outboxctl is the operator's tool for an outbox in PostgreSQL: it installs and migrates the
// tables, grants the roles of the outbox, has the relays pause and resume, and deletes what is old.
//
// It exits with 0 when it did what was asked, with 1 when that failed, and with 2 when it was asked in
// a way that it does not understand. It prints no password, wherever one was given.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}
