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
var witnesses string

// Env is a schema and topics that only one run uses.
type Env struct {
	// Run names the schema, and begins the topics' names.
	Run string
	// Pool leads to the database for everything that is not measured or harmed.
	Pool      *pgxpool.Pool
	contracts contracts
	broker    broker
	stage     stage
}

// NewEnv makes an env of its own in this database and on this broker. Close removes it.
func NewEnv(ctx context.Context, postgres, brokerAddress string) (*Env, error) {
	return OpenEnv(ctx, NewRun(), postgres, brokerAddress)
}

// NewRun is a name for an env.
func NewRun() string { return fmt.Sprintf("torture_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9) }

// OpenEnv is [NewEnv] under a name. What its schema has of the outbox is completed.
func OpenEnv(ctx context.Context, run, postgres, brokerAddress string) (*Env, error) {
	return openEnv(ctx, run, postgres, brokerAddress, (*Env).install)
}

// OpenMigrated is [OpenEnv] in a schema whose outbox somebody else migrates, before and after: it stays at its version.
func OpenMigrated(ctx context.Context, run, postgres, brokerAddress string) (*Env, error) {
	return openEnv(ctx, run, postgres, brokerAddress, (*Env).witness)
}

func openEnv(ctx context.Context, run, postgres, brokerAddress string,
	install func(*Env, context.Context) error,
) (*Env, error) {
	e := &Env{Run: run}
	e.contracts = newContracts(e.Run)
	var at *url.URL
	var err error
	if e.broker, at, err = brokerAt(brokerAddress); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(postgres)
	if err == nil {
		config.ConnConfig.ConnectTimeout = time.Minute // queries for the checker have time, also on a busy machine
		e.Pool, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		return nil, fmt.Errorf("torture: the database's address: %w", err)
	}
	if err = install(e, ctx); err == nil {
		e.stage, err = e.broker.open(ctx, at, e.Run, e.contracts.topics())
	}
	if err != nil {
		return nil, errors.Join(err, e.Close()) //nolint:contextcheck // also after an interrupt
	}
	return e, nil
}

// install makes the schema, with the outbox and its witnesses in it.
func (e *Env) install(ctx context.Context) error {
	std := stdlib.OpenDBFromPool(e.Pool)
	defer std.Close() // the pool stays
	if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: e.Run}); err != nil {
		return fmt.Errorf("torture: install the outbox: %w", err)
	}
	return e.witness(ctx)
}

// witness puts the witnesses into the schema.
func (e *Env) witness(ctx context.Context) error {
	if _, err := e.Pool.Exec(ctx, e.SQL(witnesses), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("torture: install the witnesses: %w", err)
	}
	return nil
}

// pipelined are the topics on which relays may have several events of an aggregate in flight.
func (e *Env) pipelined() []string {
	if !e.broker.pipelined {
		return nil
	}
	return e.contracts.topics()
}

// SQL puts the name of the env's schema into a statement. No search_path does: poolers drop it.
func (e *Env) SQL(statement string) string { return strings.ReplaceAll(statement, "{schema}", e.Run) }

// forget lets go of connections on which a call was cut off at its end: where writing the call took long, pgx may keep
// the error for the next call.
func (e *Env) forget() { e.Pool.Reset() }

// Close removes the schema and the topics, also after an interrupt.
func (e *Env) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), steadyTime)
	defer cancel()
	defer e.Pool.Close()
	var problems []error
	if e.stage != nil {
		problems = append(problems, e.stage.close(ctx))
	}
	if _, err := e.Pool.Exec(ctx, e.SQL("DROP SCHEMA IF EXISTS {schema} CASCADE")); err != nil {
		problems = append(problems, fmt.Errorf("torture: drop the schema: %w", err))
	}
	return errors.Join(problems...)
}

// Committed tells whether the transaction of this key has committed.
func (e *Env) Committed(ctx context.Context, key string) (committed bool, err error) {
	err = e.Pool.QueryRow(ctx, e.SQL("SELECT EXISTS (SELECT FROM {schema}.torture_done WHERE key = $1)"),
		key).Scan(&committed)
	if err != nil {
		return false, fmt.Errorf("torture: what became of %s: %w", key, err)
	}
	return committed, nil
}
