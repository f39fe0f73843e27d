// Package survey counts what stands in the outbox's tables, for metrics: how much waits, how old it is, what is dead,
// who is there. It reads small parts, one statement after the other, and counts no further than [Limit]. A relay makes
// one by itself: see relay.Config.SurveyEvery and relay.Relay.Survey.
package survey

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

// Limit is how far a survey counts: as many means "at least".
const Limit = 10_000

// A Report is what was last found in the outbox's tables. Every relay finds the same.
type Report struct {
	// Events that are not published yet, by their state, and dead ones.
	Ready, Retrying, Parked, Waiting, Dead Count
	// Topics has those that are not published and not dead by their topic; "" is for types that the registry does not
	// have. ReadyTopics has those of them that are ready, HeldTopics the others.
	Topics, ReadyTopics, HeldTopics map[string]Count
	// MaxAttempts is how many of the dead events have had all their attempts.
	MaxAttempts int64
	// BlockedAggregates is how many aggregates have a dead event that blocks them, whether or not a later one waits.
	BlockedAggregates int64
	// UnheldLanes is how many lanes nobody holds, Relays how many relays are alive.
	UnheldLanes, Relays int64
	// Pauses are those of operators that stand, by what they are about.
	Pauses    Pauses
	Retention []Retention
	// Parts are the statements of a survey, by name, and how each went. What a part found stays until
	// it is answered again. Those that this role may not run are left out.
	Parts map[string]Part
}

// Count counts events, up to [Limit]; dead ones up to that with and without others that wait behind them. Among many
// events that are settled already, behind a transaction that is open for long, not all that are ready are seen.
type Count struct {
	Events int64
	Oldest time.Duration // the age of the oldest of those, by created_at and the database's clock
}

// Pauses counts pauses.
type Pauses struct{ All, Topics, Types int64 }

// Retention is how the retention of one kind of row stands.
type Retention struct {
	Kind    string // published, dead or dedupe
	Deleted int64  // since the beginning, by all
	Ran     bool
	Age     time.Duration // since the last run that could begin
	Halted  bool          // the last run deleted nothing, because it would have been too much
}

// Part is how one statement of the survey went.
type Part struct {
	At       time.Time     // when it was last asked and had an answer; before that, when the surveyor was made
	Took     time.Duration // how long the answer took
	Failures int64         // so far
}

// The bounds of a survey that are not settings.
const (
	timeout = 2 * time.Second
	// patience is the longest wait after failures: a database that has no time for a survey is left alone.
	patience = 5 * time.Minute
	// longestAge is more than anybody can mean.
	longestAge = 100 * 366 * 24 * time.Hour
)

// Config says what is asked and how often.
type Config struct {
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Every is how long to wait between two surveys. Defaults to never.
	Every time.Duration
	// Registry has the event types with a limit of attempts of their own. Defaults to none.
	Registry *outbox.Registry
	// Topics has the topic of event types, where there is no registry.
	Topics map[string]string
	// MaxAttempts is the limit of the others. Defaults to 10, as a relay's does.
	MaxAttempts int
	// Logger takes statements that fail. Defaults to slog.Default().
	Logger *slog.Logger
}

// A Surveyor asks the tables now and then, one small statement after the other. Make one with [New].
type Surveyor struct {
	config Config
	parts  []*part

	mutex sync.Mutex
	found Report
}

// part is one statement. scan takes in its answer.
type part struct {
	Part
	name             string
	args             []any
	scan             func(rows pgx.Rows, found *Report) error
	failing          int // in a row
	dueAt            time.Time
	permissionDenied bool // of this role
}

// defaultMaxAttempts is a relay's own default.
const defaultMaxAttempts = 10

// DB is a *pgxpool.Pool or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// New makes a surveyor. It asks nothing before [Surveyor.Run].
func New(config Config) *Surveyor {
	config.Schema = cmp.Or(config.Schema, outbox.DefaultSchema)
	config.MaxAttempts = cmp.Or(config.MaxAttempts, defaultMaxAttempts)
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	s := &Surveyor{config: config}
	if config.Every > 0 {
		s.parts = partsOf(&config)
	}
	return s
}

// Look asks once, instead of now and then. It returns also why parts failed, by their names; the rest of the report
// stands.
func Look(ctx context.Context, db DB, config Config) (Report, map[string]error) {
	config.Every = 0
	s := New(config)
	s.parts = partsOf(&s.config)
	failed := map[string]error{}
	for _, part := range s.parts {
		began := time.Now()
		if err := s.query(ctx, db, part, &s.found); err != nil {
			part.permissionDenied = sqlstate.PermissionDenied(err)
			failed[part.name] = err
			continue
		}
		part.At, part.Took = began, time.Since(began)
	}
	return s.Report(), failed
}

// partsOf are the statements of a survey.
func partsOf(config *Config) []*part {
	topics := topicsOf(config)
	var types []string
	var attempts []int32
	if config.Registry != nil {
		for _, eventType := range config.Registry.Types() {
			if contract, _ := config.Registry.Contract(eventType); contract.MaxAttempts > 0 {
				types, attempts = append(types, eventType), append(attempts, int32(contract.MaxAttempts))
			}
		}
	}
	parts := []*part{
		{name: "ready", args: append([]any{Limit}, topics...), scan: scanReady},
		{name: "held", args: append([]any{Limit}, topics...), scan: scanHeld},
		{
			name: "dead", args: []any{Limit, types, attempts, config.MaxAttempts},
			scan: func(rows pgx.Rows, found *Report) error {
				return one(rows, &found.Dead.Events, age{&found.Dead.Oldest, nil}, &found.MaxAttempts, &found.BlockedAggregates)
			},
		},
		{name: "fleet", scan: func(rows pgx.Rows, found *Report) error {
			return one(rows, &found.UnheldLanes, &found.Relays, &found.Pauses.All, &found.Pauses.Topics, &found.Pauses.Types)
		}},
		{name: "retention", scan: func(rows pgx.Rows, found *Report) error {
			found.Retention = nil
			var kind Retention
			_, err := pgx.ForEachRow(rows, []any{&kind.Kind, &kind.Deleted, age{&kind.Age, &kind.Ran}, &kind.Halted},
				func() error {
					found.Retention = append(found.Retention, kind)
					return nil
				})
			return err //nolint:wrapcheck // it is logged
		}},
	}
	for _, part := range parts {
		part.At = time.Now()
	}
	return parts
}

// one scans an answer of one row.
func one(rows pgx.Rows, into ...any) error {
	_, err := pgx.ForEachRow(rows, into, func() error { return nil })
	return err //nolint:wrapcheck // it is logged
}

// age scans seconds. Null is none; what was made in the future has no age yet.
type age struct {
	into  *time.Duration
	known *bool
}

// ScanFloat64 is what pgx asks for.
func (a age) ScanFloat64(seconds pgtype.Float8) error {
	*a.into = time.Duration(min(max(seconds.Float64, 0), longestAge.Seconds()) * float64(time.Second))
	if a.known != nil {
		*a.known = seconds.Valid
	}
	return nil
}

// Report returns what was last found. It may be called at any time.
func (s *Surveyor) Report() Report {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := s.found
	found.Parts = map[string]Part{}
	for _, part := range s.parts {
		if !part.permissionDenied {
			found.Parts[part.name] = part.Part
		}
	}
	return found
}

// Run asks until ctx ends; where it is never to ask it returns at once.
func (s *Surveyor) Run(ctx context.Context, pool *pgxpool.Pool) {
	for len(s.parts) > 0 && ctx.Err() == nil {
		for _, part := range s.parts {
			if !time.Now().Before(part.dueAt) {
				s.refresh(ctx, pool, part)
			}
		}
		every := s.config.Every
		timer := time.NewTimer(every - every/20 + rand.N(every/10+1)) // or a whole fleet asks at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// refresh runs one statement and takes in what it found.
func (s *Surveyor) refresh(ctx context.Context, pool *pgxpool.Pool, part *part) {
	began := time.Now()
	s.mutex.Lock()
	found := s.found
	s.mutex.Unlock()
	err := s.query(ctx, pool, part, &found)
	if ctx.Err() != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err == nil {
		s.found = found
		// An answer is as old as its question: it may have been on its way for long.
		part.At, part.Took, part.failing, part.permissionDenied = began, time.Since(began), 0, false
		return
	}
	part.Failures++
	part.failing++
	wait := min(s.config.Every<<min(part.failing, 10), patience)
	part.dueAt = time.Now().Add(wait)
	part.permissionDenied = sqlstate.PermissionDenied(err)
	if part.failing == 1 {
		s.config.Logger.WarnContext(ctx, "the survey failed: these numbers grow old; it is tried again",
			slog.String("part", part.name), slog.Duration("in", wait), slog.String("error", clean.Error(err)))
	}
}

// query runs it in a transaction of its own that cannot last. Without bitmaps, which are made of all rows before the
// first is read: then a limit would bound nothing.
func (s *Surveyor) query(ctx context.Context, db DB, part *part, found *Report) error {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	text, _ := files.ReadFile("sql/" + part.name + ".sql") // embedded
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('statement_timeout', $1::text, true), 
		    pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true),
		    pg_catalog.set_config('max_parallel_workers_per_gather', '0', true)`, fmt.Sprint(timeout.Milliseconds()))
			if err != nil {
				return fmt.Errorf("bound the transaction: %w", err)
			}
			rows, err := tx.Query(ctx, sqltext.In(s.config.Schema, string(text)), part.args...)
			if err != nil {
				return err //nolint:wrapcheck // it is logged
			}
			return part.scan(rows, found)
		})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err //nolint:wrapcheck // it is logged
}
