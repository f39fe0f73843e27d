package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/schema"
)

// Outbox is a scratch database with an outbox in it, the statistics of statements, and autovacuum as it is shipped.
type Outbox struct {
	*Database
	URL string
	// Producers are the connections of whoever writes events.
	Producers *pgxpool.Pool
}

// NewOutbox makes one on this server, with so many connections for producers. Close drops it.
func NewOutbox(ctx context.Context, server string, connections int) (*Outbox, error) {
	made, err := NewDatabase(ctx, server)
	if err != nil {
		return nil, err
	}
	o := &Outbox{Database: made}
	if err := o.prepare(ctx, server, connections); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *Outbox) prepare(ctx context.Context, server string, connections int) error {
	at, err := url.Parse(server)
	if err != nil {
		return fmt.Errorf("bench: the database's address: %w", err)
	}
	at.Path = "/" + o.Name
	o.URL = at.String()
	config, err := o.Config("bench-migrate")
	if err != nil {
		return err
	}
	std := stdlib.OpenDB(*config)
	defer std.Close()
	if err := schema.Outbox.Up(ctx, std, schema.Options{}); err != nil {
		return err
	}
	if err := o.Exec(ctx, "CREATE EXTENSION pg_stat_statements SCHEMA public"); err != nil {
		return err
	}
	o.Producers, err = o.Pool(ctx, "bench-producers", connections)
	return err
}

// Close drops the database, with whoever is still connected to it.
func (o *Outbox) Close() error {
	if o.Producers != nil {
		o.Producers.Close()
	}
	return o.Database.Close()
}
