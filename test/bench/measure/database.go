package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// A Database is a scratch database, alone for one benchmark.
type Database struct {
	Name string
	// Control is a connection beside the measured ones, for statements that are not measured.
	Control *pgx.Conn

	admin *pgx.Conn
	url   string
}

// NewDatabase makes a database on this server, beside the one that the URL names. Close drops it.
func NewDatabase(ctx context.Context, url string) (*Database, error) {
	admin, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("bench: connect: %w (is the server running? `make services` starts it)", err)
	}
	db := &Database{Name: fmt.Sprintf("bench_%d_%d", os.Getpid(), time.Now().UnixNano()%1e9), admin: admin, url: url}
	if _, err := admin.Exec(ctx, "CREATE DATABASE "+db.Name); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: create a scratch database: %w", err), admin.Close(ctx))
	}
	config, err := db.Config("bench-control")
	if err == nil {
		db.Control, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: connect to the scratch database: %w", err), db.Close())
	}
	return db, nil
}

// Close drops the database, with whoever is still connected to it.
func (db *Database) Close() error {
	// Not the caller's context: the database must go also when the run was interrupted.
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience) // to drop one waits for a checkpoint
	defer cancel()
	var problems []error
	if db.Control != nil {
		problems = append(problems, db.Control.Close(ctx))
	}
	_, err := db.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+db.Name+" WITH (FORCE)")
	return errors.Join(append(problems, err, db.admin.Close(ctx))...)
}

// Config leads to the scratch database under this application_name.
func (db *Database) Config(application string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(db.url)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	config.Database = db.Name
	config.RuntimeParams["application_name"] = application
	return config, nil
}

// Pool opens this many connections under this application_name.
func (db *Database) Pool(ctx context.Context, application string, connections int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(db.url)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if config.ConnConfig, err = db.Config(application); err != nil {
		return nil, err
	}
	config.MaxConns = int32(connections)
	config.MinConns = config.MaxConns
	// A health check in the middle of a block would be somebody's latency.
	config.HealthCheckPeriod = time.Hour
	config.MaxConnLifetime = 24 * time.Hour
	return pgxpool.NewWithConfig(ctx, config)
}

// Exec runs statements that are not measured.
func (db *Database) Exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.Control.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("bench: %.80q: %w", statement, err)
		}
	}
	return nil
}

// Checkpoint lets every round begin with the same full-page writes ahead of it.
func (db *Database) Checkpoint(ctx context.Context) error { return db.Exec(ctx, "CHECKPOINT") }
