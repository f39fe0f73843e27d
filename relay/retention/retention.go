// Package retention deletes what is finished and old enough. The daemon and `outboxctl prune` run it; whoever runs a
// relay of their own runs [Runner.Run] beside it.
package retention

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

// Config says what is kept and for how long. The zero value is what production needs. All ages are
// counted by the database's clock.
type Config struct {
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Published is how long an event is kept after it was published or discarded, and a day longer at most where that was
	// long after it was created. Defaults to 720 h. Negative: forever, as for the next two.
	Published time.Duration
	// Dead is how long a dead letter is kept after it was resolved; one that is not resolved is never deleted.
	// Defaults to 2160 h.
	Dead time.Duration
	// Dedupe is how long a dedupe key is kept, from the beginning of the transaction that brought it: it must be
	// longer than any producer tries again. A key is never deleted before its event: a Published that is longer, or
	// forever, is so for the keys as well. Defaults to 720 h.
	Dedupe time.Duration
	// Every is how long Run waits between two runs. Defaults to an hour.
	Every time.Duration
	// Batch is the most rows of one statement, at most 5,000. Statements that take long get smaller ones. Defaults
	// to 1,000.
	Batch int
	// Pause is the least time between two statements that delete. Defaults to 200 ms: with 1,000 rows each, about
	// 4,500 rows per second. Negative: none.
	Pause time.Duration
	// MaxStep is how far a cut-off may move between two runs. If it would move further, the clock is wrong, a window
	// was shortened or nothing ran for long; a person must say which. Defaults to 168 h.
	MaxStep time.Duration
	// Confirmed is that person's word: up to this time everything may go that is old enough, however much it is.
	// It can stay where it is, since it is soon overtaken. Defaults to nothing.
	Confirmed time.Time
	// Progress is called after every statement that deleted, with the result of the run so far. Defaults to nobody.
	Progress func(Result)
	// Logger takes what was deleted, and what was not because nobody confirmed it. Defaults to slog.Default().
	Logger *slog.Logger
}

// The bounds that are not settings.
const (
	largestBatch  = 5_000
	smallestBatch = 100
	// longBatch is when a statement took so long that the next one shall be smaller.
	longBatch = 100 * time.Millisecond
	// A statement that takes longer, or waits longer for a lock, is given up.
	statementTimeout = 5 * time.Second
	lockTimeout      = 500 * time.Millisecond
	tries            = 5
	// dueTimeout bounds the count before a long step.
	dueTimeout = time.Minute
	// workFor is how long after its last sign of life a run counts as dead.
	workFor = 2 * dueTimeout
	// roundLength is how long an event that was settled late may stay: so often all of them are looked at anew.
	roundLength = 24 * time.Hour
	// mostNumbers is at how many numbers in a row a statement may look that are nobody's.
	mostNumbers = 1 << 20
	// ordinarySteps is how many times Every a cut-off may move with nobody counting what will go.
	ordinarySteps = 4
	// fewRows may go whatever their share.
	fewRows = 10_000
)

// DB is a *pgxpool.Pool or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// A Runner deletes what is finished and old enough: published and discarded events, resolved dead letters, dedupe
// keys. It takes small batches and rests between them, so that live traffic does not feel it. Any number may run at
// once: one works at a time, and if it dies another one goes on. The grants of the janitor role are enough.
//
// When more would go than time alone explains, it deletes nothing and says so: a clock that jumped a year ahead
// would otherwise empty the outbox. It goes on by itself when the clock is right again.
type Runner struct {
	db     DB
	config Config
	kinds  []kind
}

// kind is one kind of row with a window of its own.
type kind struct {
	name   string
	window time.Duration
	// parts are what it is told apart by in a result.
	parts []part
	// empty deletes what is older; count counts it.
	empty func(r *run, ctx context.Context, reach time.Time) error
	count func(r *run, ctx context.Context, reach time.Time) (counted, error)
	// due counts what would go and what would stay, before a long step; nil: nobody does.
	due func(r *run, ctx context.Context, reach time.Time) (counted, error)
	// followsEvents: a row goes only when its event has gone.
	followsEvents bool
}

type part struct {
	name string
	of   func(*Result) *int64
}

// New checks the configuration. It does not connect.
func New(db DB, config Config) (*Runner, error) {
	config = config.withDefaults()
	if problems := config.problems(); len(problems) > 0 {
		return nil, fmt.Errorf("retention: %w", errors.Join(problems...))
	}
	return &Runner{db: db, config: config, kinds: []kind{
		{
			name: "published", window: config.Published, empty: (*run).walk, count: (*run).dueEvents, due: (*run).dueEvents,
			parts: []part{
				{"published", func(r *Result) *int64 { return &r.Published }},
				{"discarded", func(r *Result) *int64 { return &r.Discarded }},
			},
		},
		{
			name: "dead", window: config.Dead, empty: (*run).batches, count: (*run).countAll,
			parts: []part{{"dead", func(r *Result) *int64 { return &r.Dead }}},
		},
		{
			name: "dedupe", window: config.Dedupe, empty: (*run).batches, count: (*run).countAll, due: (*run).dueKeys,
			followsEvents: true, parts: []part{{"dedupe", func(r *Result) *int64 { return &r.Dedupe }}},
		},
	}}, nil
}

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = outbox.DefaultSchema
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Published = cmp.Or(c.Published, 720*time.Hour)
	c.Dead = cmp.Or(c.Dead, 2160*time.Hour)
	c.Dedupe = cmp.Or(c.Dedupe, 720*time.Hour)
	c.Every = cmp.Or(c.Every, time.Hour)
	c.Batch = cmp.Or(c.Batch, 1_000)
	c.Pause = cmp.Or(c.Pause, 200*time.Millisecond)
	c.MaxStep = cmp.Or(c.MaxStep, 168*time.Hour)
	return c
}

func (c Config) problems() []error {
	var problems []error
	invalid := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"Published", c.Published}, {"Dead", c.Dead}, {"Dedupe", c.Dedupe}} {
		invalid(window.length > 0 && window.length < time.Minute, "%s: %s, must be at least 1 min, or negative: forever",
			window.name, window.length)
	}
	invalid(c.Every < time.Second, "Every: %s, must be at least 1 s", c.Every)
	invalid(c.Batch < smallestBatch || c.Batch > largestBatch, "Batch: %d, must be between %d and %d", c.Batch,
		smallestBatch, largestBatch)
	invalid(c.Pause > workFor/2, "Pause: %s, must be at most %s", c.Pause, workFor/2)
	invalid(c.MaxStep <= c.Every, "MaxStep: %s, must be more than Every (%s), or no run could follow another",
		c.MaxStep, c.Every)
	return problems
}

// Result is what a run came to.
type Result struct {
	// How many rows went.
	Published, Discarded, Dead, Dedupe int64
	// Batches is how many statements deleted, Slowest how long the longest took.
	Batches int
	Slowest time.Duration
	// Halted has the kinds of which nothing was deleted, because it would have been too much.
	Halted []Halt
	// Busy has the kinds that somebody else was at.
	Busy []string
}

// Halt says why nothing of a kind was deleted.
type Halt struct {
	Kind   string // published, dead or dedupe
	CutOff time.Time
	Reason string
}

// Run deletes now and then until ctx is done. What fails is logged and tried again at the next run.
func (r *Runner) Run(ctx context.Context) error {
	// Processes that start together would otherwise always meet.
	for wait := min(r.config.Every, time.Minute); r.rest(ctx, rand.N(wait)+wait/2); wait = r.config.Every {
		result, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			r.config.Logger.ErrorContext(ctx, "retention failed; it is tried again at its next run",
				slog.String("error", clean.Error(err)))
		}
		if result.Batches > 0 {
			r.config.Logger.InfoContext(ctx, "retention has deleted", slog.Int64("published", result.Published),
				slog.Int64("discarded", result.Discarded),
				slog.Int64("dead", result.Dead), slog.Int64("dedupe", result.Dedupe), slog.Int("batches", result.Batches),
				slog.Duration("slowest", result.Slowest))
		}
	}
	return nil
}

// Once deletes everything that is due, and returns when there is no more. An error of one kind does not keep it
// from the others. What was deleted before an error or the end of ctx stays so.
func (r *Runner) Once(ctx context.Context) (Result, error) {
	var result Result
	var problems []error
	for _, kind := range r.kinds {
		if kind.window < 0 {
			continue
		}
		run := run{Runner: r, kind: kind, worker: outbox.NewID().String(), result: &result}
		if err := run.do(ctx); err != nil {
			problems = append(problems, fmt.Errorf("retention of %s: %w", kind.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return result, errors.Join(problems...)
}

// rest waits, and tells whether ctx is still on.
func (r *Runner) rest(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// statement is a file's text.
func (r *Runner) statement(file string) string {
	text, _ := files.ReadFile("sql/" + file + ".sql") // embedded
	return sqltext.In(r.config.Schema, string(text))
}
