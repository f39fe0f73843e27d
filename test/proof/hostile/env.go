package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// Servers is where everything runs.
type Servers struct {
	PostgresURL, NATSURL, PubSubAddr string
}

// env is the database of one run, and its outlets.
type env struct {
	run     string
	servers Servers
	url     string // of the run's database
	db      *bench.Database
	outlets []*outlet
}

// newEnv makes a database that only this run uses. Close removes it, with all outlets.
func newEnv(ctx context.Context, servers Servers) (*env, error) {
	w := &env{run: fmt.Sprintf("hostile_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9), servers: servers}
	at, err := url.Parse(servers.PostgresURL)
	if err != nil {
		return nil, errors.New("hostile: the database's address is no URL")
	}
	if w.db, err = bench.NewDatabase(ctx, servers.PostgresURL); err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	at.Path = "/" + w.db.Name
	w.url = at.String()
	return w, nil
}

func (w *env) migrate(ctx context.Context, name string) error {
	config, err := w.db.Config("hostile-migrate")
	if err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	std := stdlib.OpenDB(*config)
	defer func() { _ = std.Close() }()
	if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: name}); err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	return nil
}

// Close removes what the run made, also after an interrupt.
func (w *env) Close() error {
	var problems []error
	for _, o := range w.outlets {
		problems = append(problems, o.close())
	}
	return errors.Join(append(problems, w.db.Close())...)
}

// The contracts of a run. All are on one topic, so that whatever holds up a route holds up the good events.
const (
	aggregateType = "order"
	goodType      = "order_created" // that of the corpus as well
	blockingType  = "order_blocked"
	rowTypes      = 12
	maxAttempts   = 2
)

// rowType spreads bare rows over several types: a type most of whose events break their contract is paused, and
// its events are parked.
func rowType(n int) string { return fmt.Sprintf("order_row_%02d", n%rowTypes) }

func isKnown(kind string) bool {
	for n := range rowTypes {
		if kind == rowType(n) {
			return true
		}
	}
	return kind == goodType || kind == blockingType
}

func registry(topic string) (*outbox.Registry, error) {
	types := []string{goodType, blockingType}
	for n := range rowTypes {
		types = append(types, rowType(n))
	}
	var contracts []outbox.AnyContract
	for _, kind := range types {
		contract := outbox.Contract{
			Type: kind, Aggregate: aggregateType, Topic: topic, OnDead: outbox.OnDeadSkip, MaxAttempts: maxAttempts,
		}
		if kind == blockingType {
			contract.OnDead = outbox.OnDeadBlock
		}
		contracts = append(contracts, outbox.Define[any](contract))
	}
	made, err := outbox.NewRegistry(contracts...)
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	return made, nil
}
