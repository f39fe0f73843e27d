package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var statements embed.FS

// The outboxes, which are schemas of one database.
const (
	shopName    = "shop"
	hostileName = "hostile"
)

// database is the run's own.
type database struct {
	*bench.Database

	pool *pgxpool.Pool // the proof's own, and the shop's producers'
}

func newDatabase(ctx context.Context, url string) (_ *database, err error) {
	db := &database{}
	if db.Database, err = bench.NewDatabase(ctx, url); err != nil {
		return nil, err
	}
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *database) prepare(ctx context.Context) (err error) {
	if db.pool, err = db.Pool(ctx, "proof-console", 4); err != nil {
		return err
	}
	config, err := db.Config("proof-console-migrate")
	if err != nil {
		return err
	}
	std := stdlib.OpenDB(*config)
	defer std.Close()
	for _, name := range []string{shopName, hostileName} {
		if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: name}); err != nil {
			return fmt.Errorf("console: install %s: %w", name, err)
		}
	}
	return nil
}

// Close drops the database.
func (db *database) Close() error {
	if db.pool != nil {
		db.pool.Close()
	}
	return db.Database.Close()
}

// address is the URL of the database, with a name for whoever connects.
func (db *database) address(application string) (string, error) {
	config, err := db.Config(application)
	if err != nil {
		return "", err
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Path: "/" + db.Name,
		Host:     net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))),
		RawQuery: url.Values{"sslmode": {"disable"}, "application_name": {application}}.Encode(),
	}).String(), nil
}

// run runs a statement of ours in a schema.
func (db *database) run(ctx context.Context, in, name string, args ...any) error {
	text, err := statements.ReadFile("sql/" + name + ".sql")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	statement := strings.ReplaceAll(string(text), "{schema}", pgx.Identifier{in}.Sanitize())
	if _, err := db.pool.Exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("console: %s: %w", name, err)
	}
	return nil
}

// number reads one number of the shop.
func (db *database) number(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := db.pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("console: %.80q: %w", query, err)
	}
	return n, nil
}
