package main

import (
	"cmp"
	"database/sql"

	"github.com/jackc/pgx/v5"
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

// config is how that database is reached.
func (c *rootCommand) config() (*pgx.ConnConfig, error) {
	address := cmp.Or(c.databaseURL, c.getenv("POSTHASTE_DATABASE_URL"), c.getenv("DATABASE_URL"))
	if address == "" {
		return nil, usageError{"no database is given: set DATABASE_URL or POSTHASTE_DATABASE_URL, or pass --database-url"}
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// The cause may quote a piece of the password, for instance as a port that is not a number.
		return nil, usageError{"the database URL cannot be read: it is postgres://user:password@host:port/database or a list of key=value, " +
			"and in a URL the characters / @ : ? # % of a password are written in percent form, for instance %2F"}
	}
	// Statements without a name work behind every pooler.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "outboxctl"
	}
	return config, nil
}
