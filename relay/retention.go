package relay

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
)

//go:embed sql/retention_*.sql
var retentionSQL embed.FS

// RetentionConfig says what is kept and for how long. The zero value is what production needs. All ages are
// counted by the database's clock.
type RetentionConfig struct {
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Published is how long an event is kept after it was published or discarded. Defaults to 720 h. Negative:
	// for ever, as for the next two.
	Published time.Duration
	// Dead is how long a dead letter is kept after it was resolved; one that is not resolved is never deleted.
	// Defaults to 2160 h.
	Dead time.Duration
	// Dedupe is how long a dedupe key is kept, from the beginning of the transaction that brought it: it must be
	// longer than any producer tries again. A key is never deleted before its event: a Published that is longer, or
	// for ever, is so for the keys as well. Defaults to 720 h.
	Dedupe time.Duration
	// Every is how long Run waits between two runs. Defaults to an hour.
	Every time.Duration
	// Batch is the most rows of one statement, at most 5,000. Statements that take long get smaller ones. Defaults
	// to 1,000.
	Batch int
	// Pause is the least time between two statements that delete. Defaults to 200 ms: with 1,000 rows each, about
	// 4,500 rows a second. Negative: none.
	Pause time.Duration
	// MaxStep is how far a cut-off may move between two runs. If it would move further, the clock is wrong, a window
	// was shortened or nothing ran for long; a person must say which. Defaults to 168 h.
	MaxStep time.Duration
	// Confirmed is that person's word: up to this time everything may go that is old enough, however much it is.
	// It can stay where it is, since it is soon overtaken. Defaults to nothing.
	Confirmed time.Time
	// Progress hears after every statement that deleted what the run has come to so far. Defaults to nobody.
	Progress func(RetentionResult)
	// Logger takes what was deleted and what was refused. Defaults to slog.Default().
	Logger *slog.Logger
}

// The bounds that are not settings.
const (
	largestBatch  = 5_000
	smallestBatch = 100
	// longBatch is when a statement took so long that the next one shall be smaller.
	longBatch = 100 * time.Millisecond
	// A statement that takes longer, or waits longer for a lock, is given up.
	retentionTimeout     = 5 * time.Second
	retentionLockTimeout = 500 * time.Millisecond
	retentionTries       = 5
	// dueTimeout bounds the count before a long step.
	dueTimeout = time.Minute
	// workFor is how long after its last sign of life a run counts as dead.
	workFor = 2 * dueTimeout
	// ordinarySteps is how many times Every a cut-off may move with nobody counting what will go.
	ordinarySteps = 4
	// fewRows may go whatever their share.
	fewRows = 10_000
)

// RetentionDB is a *pgxpool.Pool or *pgx.Conn.
type RetentionDB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Retention deletes what is finished and old enough: published and discarded events, resolved dead letters, dedupe
// keys. It takes small batches and rests between them, so that live traffic does not feel it. Any number may run at
// once: one works at a time, and if it dies another one goes on. The grants of the part janitor are enough.
//
// When more would go than time alone explains, it deletes nothing and says so: a clock that jumped a year ahead
// would else empty the outbox. It goes on by itself when the clock is right again.
type Retention struct {
	db     RetentionDB
	config RetentionConfig
	kinds  []retentionKind
}

// retentionKind is one kind of row with a window of its own.
type retentionKind struct {
	name   string
	window time.Duration
	// batches delete; they take and answer the same.
	batches []retentionBatch
	// due is the file that counts what would go; empty: nothing does.
	due string
	// followsEvents: a row goes only when its event has gone.
	followsEvents bool
}

type retentionBatch struct {
	file  string
	count func(*RetentionResult) *int64
}

// NewRetention checks the configuration. It does not connect.
func NewRetention(db RetentionDB, config RetentionConfig) (*Retention, error) {
	config = config.withDefaults()
	if problems := config.problems(); len(problems) > 0 {
		return nil, fmt.Errorf("relay: retention: %w", errors.Join(problems...))
	}
	return &Retention{db: db, config: config, kinds: []retentionKind{
		{name: "published", window: config.Published, due: "due_published", batches: []retentionBatch{
			{"published", func(r *RetentionResult) *int64 { return &r.Published }},
			{"discarded", func(r *RetentionResult) *int64 { return &r.Discarded }},
		}},
		{name: "dead", window: config.Dead, batches: []retentionBatch{
			{"dead", func(r *RetentionResult) *int64 { return &r.Dead }},
		}},
		{name: "dedupe", window: config.Dedupe, due: "due_dedupe", followsEvents: true, batches: []retentionBatch{
			{"dedupe", func(r *RetentionResult) *int64 { return &r.Dedupe }},
		}},
	}}, nil
}

func (c RetentionConfig) withDefaults() RetentionConfig {
	if c.Schema == "" {
		c.Schema = outbox.DefaultSchema
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	fill(&c.Published, 720*time.Hour)
	fill(&c.Dead, 2160*time.Hour)
	fill(&c.Dedupe, 720*time.Hour)
	fill(&c.Every, time.Hour)
	fill(&c.Batch, 1_000)
	fill(&c.Pause, 200*time.Millisecond)
	fill(&c.MaxStep, 168*time.Hour)
	return c
}

func (c RetentionConfig) problems() []error {
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"Published", c.Published}, {"Dead", c.Dead}, {"Dedupe", c.Dedupe}} {
		refuse(window.length > 0 && window.length < time.Minute, "%s: %s, must be at least 1 min, or negative: for ever", window.name, window.length)
	}
	refuse(c.Every < time.Second, "Every: %s, must be at least 1 s", c.Every)
	refuse(c.Batch < smallestBatch || c.Batch > largestBatch, "Batch: %d, must be between %d and %d", c.Batch, smallestBatch, largestBatch)
	refuse(c.Pause > workFor/2, "Pause: %s, must be at most %s", c.Pause, workFor/2)
	refuse(c.MaxStep <= c.Every, "MaxStep: %s, must be more than Every (%s), or no run could follow another", c.MaxStep, c.Every)
	return problems
}

// RetentionResult is what a run came to.
type RetentionResult struct {
	// How many rows went.
	Published, Discarded, Dead, Dedupe int64
	// Batches is how many statements deleted, Slowest how long the longest took.
	Batches int
	Slowest time.Duration
	// Refused has the kinds of which nothing was deleted, because it would have been too much.
	Refused []RetentionRefusal
	// Busy has the kinds that somebody else was at.
	Busy []string
}

// RetentionRefusal says why nothing of a kind was deleted.
type RetentionRefusal struct {
	Kind   string // published, dead or dedupe
	CutOff time.Time
	Reason string
}

// Run deletes now and then until ctx is done. What fails is logged and tried again at the next run.
func (r *Retention) Run(ctx context.Context) error {
	// Processes that start together would else always meet.
	for wait := min(r.config.Every, time.Minute); r.rest(ctx, rand.N(wait)+wait/2); wait = r.config.Every {
		result, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			r.config.Logger.ErrorContext(ctx, "retention failed; it is tried again at its next run", slog.String("error", clean.Error(err)))
		}
		if result.Batches > 0 {
			r.config.Logger.InfoContext(ctx, "retention has deleted", slog.Int64("published", result.Published), slog.Int64("discarded", result.Discarded),
				slog.Int64("dead", result.Dead), slog.Int64("dedupe", result.Dedupe), slog.Int("batches", result.Batches), slog.Duration("slowest", result.Slowest))
		}
	}
	return nil
}

// Once deletes everything that is due, and returns when there is no more. An error of one kind does not keep it
// from the others. What was deleted before an error or the end of ctx stays so.
func (r *Retention) Once(ctx context.Context) (RetentionResult, error) {
	var result RetentionResult
	var problems []error
	for _, kind := range r.kinds {
		if kind.window < 0 {
			continue
		}
		run := retentionRun{Retention: r, kind: kind, worker: outbox.NewID().String(), result: &result}
		if err := run.do(ctx); err != nil {
			problems = append(problems, fmt.Errorf("relay: retention of %s: %w", kind.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return result, errors.Join(problems...)
}

// rest waits, and tells whether ctx is still on.
func (r *Retention) rest(ctx context.Context, length time.Duration) bool {
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
func (r *Retention) statement(file string) string {
	text, _ := retentionSQL.ReadFile("sql/retention_" + file + ".sql") // embedded
	return strings.ReplaceAll(string(text), "{schema}", pgx.Identifier{r.config.Schema}.Sanitize())
}
