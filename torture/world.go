package torture

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/schema"
)

//go:embed sql/witness.sql
var witness string

// World is a schema and topics that only one run uses.
type World struct {
	// Run names the schema, and begins the topics' names.
	Run string
	// Pool leads to the database for everything that is not measured or harmed.
	Pool      *pgxpool.Pool
	contracts contracts
	broker    broker
	stage     stage
}

// NewWorld makes a world of its own in this database and on this broker. Close removes it.
func NewWorld(ctx context.Context, postgres, brokerAddress string) (*World, error) {
	return OpenWorld(ctx, NewRun(), postgres, brokerAddress)
}

// NewRun is a name for a world.
func NewRun() string { return fmt.Sprintf("torture_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9) }

// OpenWorld is [NewWorld] under a name. What its schema has of the outbox is completed.
func OpenWorld(ctx context.Context, run, postgres, brokerAddress string) (*World, error) {
	w := &World{Run: run}
	w.contracts = newContracts(w.Run)
	var at *url.URL
	var err error
	if w.broker, at, err = brokerAt(brokerAddress); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(postgres)
	if err == nil {
		config.ConnConfig.ConnectTimeout = time.Minute // what is asked for the judge has time, also on a busy machine
		w.Pool, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("torture: the database's address: %w", err)
	}
	if err = w.install(ctx); err == nil {
		w.stage, err = w.broker.open(ctx, at, w.Run, w.contracts.topics())
	}
	if err != nil {
		return nil, errors.Join(err, w.Close()) //nolint:contextcheck // also after an interrupt
	}
	return w, nil
}

// install makes the schema, with the outbox and its witnesses in it.
func (w *World) install(ctx context.Context) error {
	std := stdlib.OpenDBFromPool(w.Pool)
	defer std.Close() // the pool stays
	if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: w.Run}); err != nil {
		return fmt.Errorf("torture: install the outbox: %w", err)
	}
	if _, err := w.Pool.Exec(ctx, w.SQL(witness), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("torture: install the witnesses: %w", err)
	}
	return nil
}

// pipelined are the topics on which relays may have several events of an aggregate in flight.
func (w *World) pipelined() []string {
	if !w.broker.pipelined {
		return nil
	}
	return w.contracts.topics()
}

// SQL puts the name of the world's schema into a statement. No search_path does: poolers drop it.
func (w *World) SQL(statement string) string { return strings.ReplaceAll(statement, "{schema}", w.Run) }

// forget lets go of connections on which a call was cut off at its end: where writing the call took long, pgx may keep the
// error for the next call.
func (w *World) forget() { w.Pool.Reset() }

// Close removes the schema and the topics, also after an interrupt.
func (w *World) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), steadyTime)
	defer cancel()
	defer w.Pool.Close()
	var problems []error
	if w.stage != nil {
		problems = append(problems, w.stage.close(ctx))
	}
	if _, err := w.Pool.Exec(ctx, w.SQL("DROP SCHEMA IF EXISTS {schema} CASCADE")); err != nil {
		problems = append(problems, fmt.Errorf("torture: drop the schema: %w", err))
	}
	return errors.Join(problems...)
}

// Committed tells whether the transaction of this key has committed.
func (w *World) Committed(ctx context.Context, key string) (committed bool, err error) {
	err = w.Pool.QueryRow(ctx, w.SQL("SELECT EXISTS (SELECT FROM {schema}.torture_done WHERE key = $1)"), key).Scan(&committed)
	if err != nil {
		return false, fmt.Errorf("torture: what became of %s: %w", key, err)
	}
	return committed, nil
}
