package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

// localTimeout is how long a server of this machine may take to answer.
const localTimeout = 5 * time.Second

// configOrLocal is config. Where no database is given it is the PostgreSQL that answers on this machine, as psql would
// find it, so that the first minute needs no setting.
func (c *rootCommand) configOrLocal(ctx context.Context) (config *pgx.ConnConfig, found bool, err error) {
	address, err := c.address()
	if err != nil {
		return nil, false, err
	}
	if address != "" {
		config, err = c.configAt(address)
		return config, false, err
	}
	config, err = c.findLocal(ctx)
	return config, true, err
}

// A location is where a PostgreSQL may be.
type location struct{ host, port, user, database string }

// address is the location as clients take it. What it leaves out they take from their own environment and files.
func (p location) address() string {
	var parts []string
	for _, part := range [][2]string{{"host", p.host}, {"port", p.port}, {"user", p.user}, {"dbname", p.database}} {
		if part[1] != "" {
			value := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(part[1])
			parts = append(parts, part[0]+"='"+value+"'")
		}
	}
	return strings.Join(parts, " ")
}

// findLocal asks the places where psql would look, one after the other.
func (c *rootCommand) findLocal(ctx context.Context) (*pgx.ConnConfig, error) {
	given := location{
		host: c.getenv("PGHOST"), port: c.getenv("PGPORT"), user: c.getenv("PGUSER"), database: c.getenv("PGDATABASE"),
	}
	hosts := []string{given.host}
	if given.host == "" {
		hosts = []string{"/var/run/postgresql", "/tmp", "127.0.0.1"}
	}
	var tried []string
	for _, host := range hosts {
		given.host = host
		config, err := c.tryLocation(ctx, given)
		usage := usageError{}
		switch {
		case err == nil:
			return config, nil
		case ctx.Err() != nil || errors.As(err, &usage):
			return nil, err
		}
		if state := sqlState(nil); errors.As(err, &state) { // it is there, and lets nobody in
			return nil, err
		}
		tried = append(tried, fmt.Sprintf("  %s, port %s: %s", host, orElse(given.port, "5432"), reason(err)))
	}
	return nil, problem{
		code: "no_database", exit: exitFailed,
		err: fmt.Errorf("no database is given, and no PostgreSQL answers on this machine:\n%s", strings.Join(tried, "\n")),
		hint: "start one, for instance with 'docker run -d -p 127.0.0.1:5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust " +
			"postgres:18',\nor name one: export DATABASE_URL=postgres://user@localhost:5432/database",
	}
}

// tryLocation connects to a location. Nobody has asked for a user or a database that is only psql's default: where it
// does not exist, "postgres" is what every server has.
func (c *rootCommand) tryLocation(ctx context.Context, at location) (*pgx.ConnConfig, error) {
	for {
		config, err := c.configAt(at.address())
		if err != nil {
			return nil, err
		}
		trying, cancel := context.WithTimeout(ctx, localTimeout)
		conn, err := pgx.ConnectConfig(trying, config)
		cancel()
		if err == nil {
			_ = conn.Close(ctx) // it has answered
			return config, nil
		}
		var state sqlState
		switch known := errors.As(err, &state); {
		case known && state.SQLState() == "3D000" && at.database == "":
			at.database = "postgres"
		case known && state.SQLState() == "28000" && at.user == "":
			at.user = "postgres"
		default:
			return nil, notConnected(err, config)
		}
	}
}

// reason is what a person needs of an error of the network.
func reason(err error) string {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) {
		return clean.Line(dial.Err.Error())
	}
	lines := strings.Split(err.Error(), "\n")
	return clean.Line(lines[len(lines)-1])
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
