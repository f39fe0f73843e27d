// Package backfill makes events of rows that existed before the outbox did. It reads a query in the order of its keys,
// batch by batch, and emits each row once: the key of a row is in the dedupe key of its event. A run that was cut off
// is simply run again; what is there is passed over by looks into an index.
package backfill

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

// sampleSize is how many events a plan shows.
const sampleSize = 3

// Columns are the names that the columns of a query may have, as the parameters of outbox_emit, and key.
var Columns = []string{
	"key", "event_type", "aggregate_type", "aggregate_id", "data", "tenant_id", "headers", "dedupe_key", "occurred_at",
}

// DB is a *pgxpool.Pool or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Config says which events are made of which rows. What is the same for all rows stands here, and a column of the query
// is stronger.
type Config struct {
	// Schema is the outbox's. Defaults to public.
	Schema string
	// Query is a SELECT. Its column key tells its rows apart, and events are emitted in its order; the others are named
	// as in [Columns]. It runs in transactions that only read, once to count and then for each batch: an index on the key
	// makes that cheap. TimeZone is UTC in them and DateStyle ISO, whatever the session has.
	Query string
	// EventType and AggregateType are needed where no column has them; the id of the aggregate is the key where no column
	// has it. Namespace defaults to "default".
	EventType, AggregateType, Namespace, TenantID string
	// Data is the event's data. Defaults to an empty object.
	Data json.RawMessage
	// Headers of a row's own are stronger, name by name.
	Headers map[string]string
	// After is a key: rows up to it are left out. Empty: none.
	After string
	// Batch is how many events a transaction has at most. Defaults to 500.
	Batch int
	// Rate is how many events are emitted per second at most. Zero: as many as there can be.
	Rate float64
}

// A Backfill is ready to run.
type Backfill struct {
	db        DB
	config    Config
	contracts map[[2]string]*outbox.ContractFor[json.RawMessage]
}

// New checks the configuration.
func New(db DB, config Config) (*Backfill, error) {
	config.Query = strings.TrimRight(strings.TrimSpace(config.Query), "; \n\t")
	if config.Schema == "" {
		config.Schema = outbox.DefaultSchema
	}
	if config.Namespace == "" {
		config.Namespace = outbox.DefaultNamespace
	}
	if config.Data == nil {
		config.Data = json.RawMessage("{}")
	}
	if config.Batch == 0 {
		config.Batch = 500
	}
	var problems []error
	if config.Query == "" {
		problems = append(problems, errors.New("the query is empty"))
	}
	if config.Batch < 1 || config.Batch > outbox.MaxEventsPerEmit {
		problems = append(problems, fmt.Errorf("the batch is %d, must be between 1 and %d", config.Batch,
			outbox.MaxEventsPerEmit))
	}
	if config.Rate < 0 || math.IsNaN(config.Rate) || math.IsInf(config.Rate, 0) {
		problems = append(problems, fmt.Errorf("the rate is %v: it must be above 0, or 0 for none", config.Rate))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, &InputError{Err: err}
	}
	if config.Rate > 0 { // a second's worth at a time at most
		config.Batch = min(config.Batch, max(1, int(config.Rate)))
	}
	return &Backfill{
		db: db, config: config, contracts: map[[2]string]*outbox.ContractFor[json.RawMessage]{},
	}, nil
}

// An InputError says what is wrong with the configuration, or with what the query answers.
type InputError struct{ Err error }

func (e *InputError) Error() string { return "backfill: " + e.Err.Error() }

// Unwrap is what is wrong.
func (e *InputError) Unwrap() error { return e.Err }

// A QueryError is the database's about the query.
type QueryError struct{ Err error }

func (e *QueryError) Error() string { return "backfill: the query: " + e.Err.Error() }

// Unwrap is the database's error.
func (e *QueryError) Unwrap() error { return e.Err }

// A Plan is what there is to do.
type Plan struct {
	// Rows is how many rows the query has, behind After if that is given.
	Rows int64 `json:"rows"`
	// Sample are the first events of them.
	Sample []Sample `json:"sample"`

	columns []string // that the query has
	keyType string   // the type of its key, as SQL calls it
}

// A Sample is an event as it would be emitted.
type Sample struct {
	Key           string            `json:"key"`
	Type          string            `json:"type"`
	AggregateType string            `json:"aggregateType"`
	AggregateID   string            `json:"aggregateId"`
	Tenant        string            `json:"tenant,omitempty"`
	DedupeKey     string            `json:"dedupeKey"`
	Headers       map[string]string `json:"headers,omitempty"`
	Data          json.RawMessage   `json:"data"`
}

// Plan looks at the query, counts its rows and makes the first events, without emitting them. Everything that is wrong
// with them it tells: a key that is missing or there twice is an [InputError].
func (b *Backfill) Plan(ctx context.Context) (Plan, error) {
	var plan Plan
	err := b.reading(ctx, func(tx pgx.Tx) error {
		if err := b.describe(ctx, tx, &plan); err != nil {
			return err
		}
		var keys, without int64
		err := tx.QueryRow(ctx, b.statement("count", plan, b.first(), 0), b.args(b.first())...).
			Scan(&plan.Rows, &keys, &without)
		if err != nil {
			return &QueryError{err}
		}
		if without > 0 {
			return &InputError{fmt.Errorf("%d rows of the query have no key", without)}
		}
		if plan.Rows != keys {
			return &InputError{fmt.Errorf("the query has %d rows and %d keys: each row needs a key of its own", plan.Rows,
				keys)}
		}
		rows, err := b.next(ctx, tx, plan, b.first(), sampleSize)
		if err != nil {
			return err
		}
		for _, row := range rows {
			plan.Sample = append(plan.Sample, row.sample())
		}
		return b.check(rows)
	})
	return plan, err
}

// Progress is how far a run is.
type Progress struct {
	// Rows is how many were looked at, Emitted how many events were written, and There how many were there already.
	Rows    int64 `json:"rows"`
	Emitted int64 `json:"emitted"`
	There   int64 `json:"there"`
	// Key is the last row's that is done; empty: none yet.
	Key string `json:"key,omitempty"`
}

// Run emits what the query has, a transaction for each batch, and reports after each. Where it ends early,
// what was written stays, and a second run goes on. Of a row that no event can be made of the error is an
// [InputError], and the batch with it is not written.
func (b *Backfill) Run(ctx context.Context, plan Plan, report func(Progress)) (done Progress, err error) {
	pace := pace{rate: b.config.Rate}
	for after := b.first(); ; {
		var rows []row
		err := b.reading(ctx, func(tx pgx.Tx) (err error) {
			rows, err = b.next(ctx, tx, plan, after, b.config.Batch)
			return err
		})
		if err != nil || len(rows) == 0 {
			return done, err
		}
		if err := b.check(rows); err != nil {
			return done, err
		}
		begun := time.Now()
		emitted, err := b.emit(ctx, rows)
		if err != nil {
			return done, err
		}
		done.Rows += int64(len(rows))
		done.Emitted += int64(emitted)
		done.There += int64(len(rows) - emitted)
		done.Key = rows[len(rows)-1].key
		after = &rows[len(rows)-1].key
		report(done)
		if len(rows) < b.config.Batch {
			return done, nil
		}
		if err := wait.For(ctx, time.Until(pace.next(begun, emitted))); err != nil {
			return done, err
		}
	}
}

// pace keeps the rate.
type pace struct {
	rate float64
	due  time.Time
}

// next is when the next batch may begin, after one that began at a time and emitted so many. Time in which nothing was
// emitted is no credit: what was passed over would let all that comes then go at once.
func (p *pace) next(begun time.Time, emitted int) time.Time {
	if p.rate == 0 || emitted == 0 {
		return p.due
	}
	if begun.After(p.due) {
		p.due = begun
	}
	p.due = p.due.Add(time.Duration(float64(emitted) / p.rate * float64(time.Second)))
	return p.due
}

// reading runs something in a transaction that only reads. The text of a key is what the next rows are asked for by,
// and what makes the dedupe key: it must be exact, and the same in all sessions.
func (b *Backfill) reading(ctx context.Context, do func(pgx.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("backfill: begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, b.statement("texts", Plan{}, nil, 0)); err != nil {
		return fmt.Errorf("backfill: begin: %w", err)
	}
	return do(tx)
}

// describe asks what columns the query has.
func (b *Backfill) describe(ctx context.Context, tx pgx.Tx, plan *Plan) error {
	rows, err := tx.Query(ctx, b.statement("columns", *plan, nil, 0), pgx.QueryExecModeExec)
	if err != nil {
		return &QueryError{err}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return &QueryError{err}
	}
	var keyType uint32
	for _, column := range rows.FieldDescriptions() {
		plan.columns = append(plan.columns, column.Name)
		if column.Name == "key" {
			keyType = column.DataTypeOID
		}
	}
	if err := b.config.fits(plan.columns); err != nil {
		return &InputError{err}
	}
	if keyType == pgtype.RecordOID || keyType == pgtype.RecordArrayOID {
		return &InputError{errors.New("the key is a row without a type, which PostgreSQL cannot read from its text: give " +
			"the query another key, for instance one with concat_ws")}
	}
	if err := tx.QueryRow(ctx, b.statement("type", *plan, nil, 0), int64(keyType)).Scan(&plan.keyType); err != nil {
		return fmt.Errorf("backfill: the type of the key: %w", err)
	}
	return nil
}

// fits tells what is wrong with the columns.
func (c Config) fits(columns []string) error {
	var problems []error
	for _, name := range columns {
		if !slices.Contains(Columns, name) {
			problems = append(problems, fmt.Errorf("the query has a column %.80q, which is no part of an event: name it as one "+
				"of %s", name, strings.Join(Columns, ", ")))
		}
	}
	for name, given := range map[string]string{
		"key": "", "event_type": c.EventType, "aggregate_type": c.AggregateType,
	} {
		if given == "" && !slices.Contains(columns, name) {
			problems = append(problems, fmt.Errorf("the query has no column %s", name))
		}
	}
	return errors.Join(problems...)
}

// first is the key behind which it begins. Nil is none: the empty text is a key as well, that of a row.
func (b *Backfill) first() *string {
	if b.config.After == "" {
		return nil
	}
	return &b.config.After
}

// statement is the text of one of our files, with the query in it.
func (b *Backfill) statement(name string, plan Plan, after *string, limit int) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	behind, read := "true", "q.key::text::"+plan.keyType
	onward := read + " = q.key"
	if after != nil {
		behind = "q.key > $1::text::" + plan.keyType
		onward += " AND " + read + " > $1::text::" + plan.keyType
	}
	// The query comes last: whatever is in it stays.
	return strings.NewReplacer("{columns}", plan.list(), "{after}", behind, "{onward}", onward,
		"{limit}", fmt.Sprint(limit), "{query}", b.config.Query).
		Replace(sqltext.In(b.config.Schema, sqltext.Bare(string(text))))
}

// args are the parameters of a statement. Named so, pgx sends one statement and no more, whatever the query is.
func (b *Backfill) args(after *string) []any {
	if after == nil {
		return []any{pgx.QueryExecModeExec}
	}
	return []any{pgx.QueryExecModeExec, *after}
}
