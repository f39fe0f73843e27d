// Command api is the marketplace over HTTP. It binds to this machine only unless told otherwise, and asks nobody who he
// is: it is an example.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/examples/marketplace/api"
	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/outbox"
)

func main() { process.Main("api", run) }

func run(ctx context.Context, logger *slog.Logger) error {
	values, err := settings.Load(os.Args[1:], os.Environ())
	if err != nil {
		return err
	}
	settings.WarnInsecure(ctx, values, logger)
	pool, err := pgxpool.New(ctx, settings.DatabaseURL.Get(values).Reveal())
	if err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	defer pool.Close()
	bell := outbox.NewDoorbell(outbox.RingPgx(pool, outbox.DefaultSchema)) //nolint:contextcheck // it ends with Close
	defer bell.Close()
	return process.Serve(ctx, "api", settings.APIListen.Get(values), api.New(pool, bell, logger), logger)
}
