package publisher

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// Scratch makes a database that nobody else uses, and whose name begins so.
func Scratch(ctx context.Context, server, prefix string) (url string, drop func() error, err error) {
	name := pgtest.NewName(prefix)
	do := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
		return nil
	}
	if err := do(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return "", nil, fmt.Errorf("publisher: %w", err)
	}
	drop = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience) // to drop one waits for a checkpoint
		defer cancel()
		return do(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	address := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return "postgres://" + config.User + "@" + address + "/" + name + "?sslmode=disable", drop, nil
}
