package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// RetentionConfig says how long an inbox remembers. The zero value is what production needs. All ages are counted by
// the database's clock.
type RetentionConfig struct {
	// Schema is where the inbox is. Defaults to "public".
	Schema string
	// Keep is how long an event is remembered after it was handled, and an aggregate's newest event after it was
	// applied. Defaults to 720 h.
	Keep time.Duration
	// Horizon is the longest time after which an event may come once more: the retention of the broker, and of the
	// outbox where operators redeliver. A shorter Keep is refused. Defaults to 168 h.
	Horizon time.Duration
	// Every is how long Run waits between two runs. Defaults to an hour.
	Every time.Duration
	// Batch is the most rows of one statement, 100 to 5,000. Defaults to 1,000.
	Batch int
	// Pause is the least time between two statements that delete; they rest for as long as the last one took, if that
	// is more. Defaults to 200 ms. Negative: none.
	Pause time.Duration
	// MaxStep is how far the cut-off may move between two runs. If it would move further, the clock is wrong, Keep was
	// shortened or nothing ran for long; a person must say which. Defaults to 168 h.
	MaxStep time.Duration
	// Confirmed is that person's word: up to this time everything may go that is old enough, however much it is. It can
	// stay where it is, since it is soon overtaken. Defaults to nothing.
	Confirmed time.Time
	// Logger takes what was deleted, and why nothing was. Defaults to slog.Default().
	Logger *slog.Logger
}

// ordinaryStep is the constant of inbox_clean: how far a cut-off may move with nobody counting what will go.
const ordinaryStep = 4 * time.Hour

// batchTimeout bounds one statement, the count before a long step included.
const batchTimeout = time.Minute

// RetentionDB is a *sql.DB. For a pgx pool, pgx's stdlib.OpenDBFromPool makes one.
type RetentionDB interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Retention deletes what an inbox need not remember any more. It takes small batches and rests between them. Any number
// may run at once: their batches take turns. The grants of the janitor role are enough.
//
// When more would go than time alone explains, it deletes nothing and says so: a clock that jumped a year ahead would
// otherwise make consumers handle again whatever still comes. It goes on by itself when the clock is right again.
type Retention struct {
	db     RetentionDB
	config RetentionConfig
}

// NewRetention checks the configuration. It does not connect.
func NewRetention(db RetentionDB, config RetentionConfig) (*Retention, error) {
	config = config.withDefaults()
	if problems := config.problems(); len(problems) > 0 {
		return nil, fmt.Errorf("inbox: retention: %w", errors.Join(problems...))
	}
	return &Retention{db: db, config: config}, nil
}

func (c RetentionConfig) withDefaults() RetentionConfig {
	fill := func(value *time.Duration, otherwise time.Duration) {
		if *value == 0 {
			*value = otherwise
		}
	}
	if c.Schema == "" {
		c.Schema = outbox.DefaultSchema
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Batch == 0 {
		c.Batch = 1_000
	}
	fill(&c.Keep, 720*time.Hour)
	fill(&c.Horizon, 168*time.Hour)
	fill(&c.Every, time.Hour)
	fill(&c.Pause, 200*time.Millisecond)
	fill(&c.MaxStep, 168*time.Hour)
	return c
}

func (c RetentionConfig) problems() []error {
	var problems []error
	check := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(c.Horizon < time.Minute, "Horizon: %s, must be at least 1 min", c.Horizon)
	check(c.Keep < c.Horizon,
		"Keep: %s, must be at least Horizon (%s): what comes again after it was forgotten is handled again",
		c.Keep, c.Horizon)
	check(c.Every < time.Second, "Every: %s, must be at least 1 s", c.Every)
	check(c.Batch < 100 || c.Batch > 5_000, "Batch: %d, must be between 100 and 5000", c.Batch)
	check(c.MaxStep <= max(c.Every, ordinaryStep),
		"MaxStep: %s, must be more than Every (%s) and %s, or no run could follow another", c.MaxStep, c.Every, ordinaryStep)
	return problems
}

// RetentionResult is what a run came to.
type RetentionResult struct {
	// Deleted is how many rows went, Batches in how many statements, Slowest how long the longest took.
	Deleted int64
	Batches int
	Slowest time.Duration
	// Halted says why nothing was deleted; empty: what was due was deleted.
	Halted string
}

// Run deletes now and then until ctx is done. What fails is logged and tried again at the next run.
func (r *Retention) Run(ctx context.Context) error {
	// Processes that start together would otherwise always meet.
	for wait := min(r.config.Every, time.Minute); rest(ctx, rand.N(wait)+wait/2); wait = r.config.Every {
		result, err := r.Once(ctx)
		if err != nil && ctx.Err() == nil {
			r.config.Logger.ErrorContext(ctx, "retention of the inbox failed; it is tried again at its next run",
				slog.String("error", err.Error()))
		}
		if result.Deleted > 0 {
			r.config.Logger.InfoContext(ctx, "retention of the inbox has deleted", slog.Int64("rows", result.Deleted),
				slog.Int("batches", result.Batches), slog.Duration("slowest", result.Slowest))
		}
	}
	return nil
}

// Once deletes everything that is due, and returns when there is no more. What was deleted before an error or the end
// of ctx stays so.
func (r *Retention) Once(ctx context.Context) (RetentionResult, error) {
	var result RetentionResult
	for {
		began := time.Now()
		more, err := r.batch(ctx, &result)
		if err != nil {
			return result, err
		}
		took := time.Since(began)
		result.Slowest = max(result.Slowest, took)
		if result.Halted != "" {
			r.config.Logger.WarnContext(ctx, "retention of the inbox deletes nothing", slog.String("reason", result.Halted))
		}
		if !more {
			return result, nil
		}
		// Half of the time at most, so that a slow server is not kept busy.
		if !rest(ctx, max(r.config.Pause, took)) {
			return result, ctx.Err()
		}
	}
}

// batch is one call of inbox_clean, a transaction of its own.
func (r *Retention) batch(ctx context.Context, result *RetentionResult) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	var confirmed any
	if !r.config.Confirmed.IsZero() {
		confirmed = r.config.Confirmed.UTC().Format(time.RFC3339)
	}
	seconds := func(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }
	var deleted int64
	err = r.db.QueryRowContext(ctx, statementText(r.config.Schema, "clean"), seconds(r.config.Keep),
		seconds(r.config.Horizon),
		fmt.Sprint(r.config.Batch), seconds(r.config.MaxStep), confirmed).Scan(&deleted, &more, &result.Halted)
	if err != nil {
		return false, fmt.Errorf("inbox: retention: %w%s", err, hint(err, "janitor"))
	}
	if deleted > 0 {
		result.Deleted += deleted
		result.Batches++
	}
	return more, nil
}

// rest waits, and tells whether ctx is still on.
func rest(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
