package drain

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var statements embed.FS

const (
	outboxSchema = outbox.DefaultSchema
	// OutboxTable is where the relay and the bare loop find their events.
	OutboxTable = outboxSchema + ".outbox_events"
	// LeaseTable is the row-lease loop's copy of it.
	LeaseTable = "bench.lease_events"
	// MinimalTable is the smallest loop's own.
	MinimalTable = "bench.minimal_events"
)

// tableStatements are the names of the statements that fill a table and tell what came of it.
type tableStatements struct{ fill, result string }

// statementsOf has them, also of the table that does not have the columns of the outbox.
func statementsOf(table string) tableStatements {
	if table == MinimalTable {
		return tableStatements{"fill_minimal", "result_minimal"}
	}
	return tableStatements{"fill", "result"}
}

func statement(name string, replace ...string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.NewReplacer(append(replace, "{schema}", outboxSchema)...).Replace(strings.TrimSpace(string(text)))
}

// A Template is a backlog that can be put into a table again and again.
type Template struct {
	Name   string
	Events int
	// Hottest is how many events one aggregate has at most, of those behind a fleet's warm-up.
	Hottest int
}

// Env is the scratch database with the outbox and the row-lease table in it.
type Env struct {
	DB *bench.Database

	tap bench.Tap // on the connections that are measured
}

// NewEnv installs the tables. Autovacuum is off: it would come in the middle of somebody's turn.
func NewEnv(ctx context.Context, db *bench.Database) (*Env, error) {
	w := &Env{DB: db}
	if err := w.migrate(ctx, schema.Options{Schema: outboxSchema}); err != nil {
		return nil, err
	}
	return w, db.Exec(ctx,
		"CREATE SCHEMA bench", statement("lease_table"), statement("minimal_table"),
		"ALTER TABLE "+OutboxTable+" SET (autovacuum_enabled = off)",
		"ALTER TABLE "+LeaseTable+" SET (autovacuum_enabled = off)",
		"ALTER TABLE "+MinimalTable+" SET (autovacuum_enabled = off)")
}

func (w *Env) migrate(ctx context.Context, options schema.Options) error {
	config, err := w.DB.Config("bench-control")
	if err != nil {
		return err
	}
	std := stdlib.OpenDB(*config)
	err = schema.Outbox.Up(ctx, std, options)
	if err := errors.Join(err, std.Close()); err != nil {
		return fmt.Errorf("drain: migrate: %w", err)
	}
	return nil
}

const emitAtOnce = 1000

// Template emits events, as an application would, and keeps a copy. Zipf above 1 is the skew of their
// aggregates; otherwise they are spread evenly.
func (w *Env) Template(ctx context.Context, name string, events int, zipf float64) (Template, error) {
	template := Template{Name: "template_" + name, Events: events}
	if err := w.Empty(ctx); err != nil {
		return template, err
	}
	draws := newDraws(zipf)
	batch := make([]outbox.Event, 0, emitAtOnce)
	for left := events; left > 0; left -= len(batch) {
		batch = batch[:0]
		for range min(left, emitAtOnce) {
			batch = append(batch, draws.event())
		}
		err := pgx.BeginFunc(ctx, w.DB.Control, func(tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, tx, batch...)
			return err
		})
		if err != nil {
			return template, fmt.Errorf("drain: emit: %w", err)
		}
	}
	if err := w.DB.Exec(ctx, statement("template", "{template}", template.Name)); err != nil {
		return template, err
	}
	most := fmt.Sprintf("SELECT max(g.count) FROM (SELECT count(*) FROM bench.%s WHERE n >= %d GROUP BY aggregate_id) g",
		template.Name, events/warmUpShare)
	if err := w.DB.Control.QueryRow(ctx, most).Scan(&template.Hottest); err != nil {
		return template, fmt.Errorf("drain: hottest aggregate: %w", err)
	}
	return template, nil
}

// Empty takes all events, relays and leases away. The checkpoint comes while the tables are empty: what is
// filled in afterwards is then settled without full-page images, as events are that were written lately.
func (w *Env) Empty(ctx context.Context) error {
	if err := w.DB.Exec(ctx, statement("empty")); err != nil {
		return err
	}
	return w.DB.Checkpoint(ctx)
}

// Fill puts events of the template into a table, from this one on. They are numbered as they come.
func (w *Env) Fill(ctx context.Context, template Template, table string, from, events int) error {
	return w.DB.Exec(ctx, statement(statementsOf(table).fill,
		"{table}", table, "{template}", template.Name, "{from}", strconv.Itoa(from), "{events}", strconv.Itoa(events)))
}

// Refill empties the tables, fills one, and leaves it vacuumed.
func (w *Env) Refill(ctx context.Context, template Template, table string) error {
	if err := w.Empty(ctx); err != nil {
		return err
	}
	if err := w.Fill(ctx, template, table, 0, template.Events); err != nil {
		return err
	}
	return w.DB.Exec(ctx, "VACUUM ANALYZE "+table)
}

// Result is what a table holds when all is over.
type Result struct {
	Rows, Published int
	// Charged is how many of them had attempts that failed by their own fault, of which there is none.
	Charged int
	// Last is when the last event was settled.
	Last time.Time
}

// Result reads it.
func (w *Env) Result(ctx context.Context, table string) (Result, error) {
	var result Result
	var last *time.Time
	row := w.DB.Control.QueryRow(ctx, statement(statementsOf(table).result, "{table}", table))
	if err := row.Scan(&result.Rows, &result.Published, &result.Charged, &last); err != nil {
		return result, fmt.Errorf("drain: result: %w", err)
	}
	if last != nil {
		result.Last = *last
	}
	return result, nil
}

// Connect opens a connection that counts as the server's part of what is measured.
func (w *Env) Connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := w.DB.Config("bench-drain")
	if err != nil {
		return nil, err
	}
	config.DialFunc = w.tap.Dial
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("drain: connect: %w", err)
	}
	return conn, nil
}

// URL leads to the scratch database.
func (w *Env) URL() (string, error) {
	config, err := w.DB.Config("bench-drain")
	if err != nil {
		return "", err
	}
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), RawQuery: "sslmode=disable",
		Host: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), Path: config.Database,
	}
	return address.String(), nil
}

// Backends are the server's processes for all connections but our own two.
func (w *Env) Backends(ctx context.Context) ([]int, error) {
	rows, err := w.DB.Control.Query(ctx, `SELECT pid FROM pg_stat_activity
		WHERE datname = $1 AND backend_type = 'client backend' AND application_name NOT IN ('bench-control', 'bench-lanes')`,
		w.DB.Name)
	if err != nil {
		return nil, fmt.Errorf("drain: backends: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}
