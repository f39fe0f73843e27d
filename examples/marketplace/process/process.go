// Package process is what the marketplace's programs have in common: signals, exit codes and a web server.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

// Main runs a program until it is done or a signal comes, and ends the process: with 0 when it did what was asked, 1
// when that failed, 2 when its settings are refused. A second signal ends it at once.
func Main(name string, run func(ctx context.Context, logger *slog.Logger) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err == nil {
		return
	}
	_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		os.Exit(2) //nolint:revive // this is a main function
	}
	os.Exit(1) //nolint:revive // as above
}

// Serve answers on the address until ctx ends, and then finishes the requests that it has. When it listens it says so
// on standard output, for whoever waits for it.
func Serve(ctx context.Context, name, address string, handler http.Handler, logger *slog.Logger) error {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	stopped := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		stopped <- server.Shutdown(limited)
	})
	fmt.Printf("ready %s http://%s\n", name, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}
