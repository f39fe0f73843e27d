package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// open connects to the database that the flags and the environment name.
func (c *rootCommand) open() (*sql.DB, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config), nil
}

// pool connects as well, for work that is stopped in the middle: a statement that is cut off takes its connection
// along, and what has to be written at the end needs another.
func (c *rootCommand) pool(ctx context.Context) (*pgxpool.Pool, error) {
	connection, err := c.config()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	config.ConnConfig, config.MaxConns = connection, 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// config is how that database is reached.
func (c *rootCommand) config() (*pgx.ConnConfig, error) {
	address := cmp.Or(c.databaseURL, c.getenv("POSTHASTE_DATABASE_URL"), c.getenv("DATABASE_URL"))
	if address == "" {
		return nil, usageError{"no database is given: set DATABASE_URL or POSTHASTE_DATABASE_URL, or pass --database-url"}
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The cause may quote a piece of the password, for instance as a port that is not a number.
		return nil, usageError{
			"the database URL cannot be read: it is postgres://user:password@host:port/database or a list of key=value, " +
				"and in a URL the characters / @ : ? # % of a password are written in percent form, for instance %2F",
		}
	}
	// Statements without a name work behind every pooler.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "outboxctl"
	}
	return config, nil
}
