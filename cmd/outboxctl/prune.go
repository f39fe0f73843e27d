package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/relay/retention"
)

// pruneCommand deletes what is finished and old, once.
type pruneCommand struct {
	root                    *rootCommand
	published, dead, dedupe time.Duration
	every, pause, progress  time.Duration
	batch                   int
	confirmed               string
	dryRun                  bool
}

func (c *pruneCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete what is finished and old, once: for cron",
		Long: `Delete what is finished and old: published and discarded events, resolved dead letters, dedupe keys. It ` +
			`works in small
batches with rests between them, until nothing more is due, and ends.

It is the retention of outbox-publisher, for whoever would rather have cron do it: set retention.every to 0s there, and
run this at least once per day. Both at once hurt nobody, nor do two of these: one works at a time, and whoever comes
second leaves it to the first and ends with 0.

The role needs what 'outboxctl grant janitor ROLE' gives, and no more. It can delete what is finished, and sees no
payload.

When more would go than time alone explains, because the clock jumped, a window was made shorter or nothing ran for
long, it deletes nothing of that kind, says why, and ends with 1. If all of it is meant, pass --confirmed with the time
that it names.

The last line has what went, as name=value. Work that takes longer says meanwhile how far it is.`,
		Example: `  outboxctl prune
  outboxctl prune --dry-run
  outboxctl prune --published 168h --dead 0s --schema billing
  outboxctl prune --every 1h --confirmed 2026-01-31T00:00:00Z`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.published, "published", 720*time.Hour,
		"how long a published or discarded event is kept; 0s: forever")
	flags.DurationVar(&c.dead, "dead", 2160*time.Hour, "how long a resolved dead letter is kept; 0s: forever")
	flags.DurationVar(&c.dedupe, "dedupe", 720*time.Hour,
		"how long a dedupe key is kept, never less than its event; 0s: forever")
	flags.DurationVar(&c.every, "every", 24*time.Hour, "how often you run it: tells how much time alone explains")
	flags.IntVar(&c.batch, "batch", 1000, "the most rows of one statement")
	flags.DurationVar(&c.pause, "pause", 200*time.Millisecond,
		"the least time between two statements that delete; 0s: none")
	flags.StringVar(&c.confirmed, "confirmed", "", "up to this time everything may go that is old enough")
	flags.DurationVar(&c.progress, "progress", 10*time.Second, "how often to say how far it is; 0s: never")
	flags.BoolVar(&c.dryRun, "dry-run", false, "count what would go, and change nothing")
	return cmd
}

// weekly is how far retention lets a cut-off move where it runs every hour.
const weekly = 168 * time.Hour

// retention is what the flags ask for.
func (c *pruneCommand) retention(db retention.DB, progress func(retention.Result)) (*retention.Runner, error) {
	var problems []error
	type duration struct {
		name  string
		value time.Duration
	}
	windows := []duration{{"published", c.published}, {"dead", c.dead}, {"dedupe", c.dedupe}}
	for _, flag := range append(windows, duration{"every", c.every}, duration{"pause", c.pause},
		duration{"progress", c.progress}) {
		if flag.value < 0 {
			problems = append(problems, fmt.Errorf("--%s %s is less than nothing", flag.name, flag.value))
		}
	}
	for _, flag := range windows {
		if flag.value > 0 && flag.value < time.Minute {
			problems = append(problems, fmt.Errorf("--%s %s is too short: use 1m or more, or 0s to keep all of it", flag.name,
				flag.value))
		}
	}
	if c.every == 0 || c.batch == 0 {
		problems = append(problems, errors.New("--every and --batch must not be 0"))
	}
	config := retention.Config{
		Schema: c.root.schema, Published: orNever(c.published), Dead: orNever(c.dead), Dedupe: orNever(c.dedupe),
		Every: c.every, MaxStep: max(weekly, 2*c.every), Batch: c.batch, Pause: orNever(c.pause), Progress: progress,
		Logger: slog.New(slog.DiscardHandler), // all that it would say is in the result
	}
	var err error
	if c.confirmed != "" {
		if config.Confirmed, err = time.Parse(time.RFC3339, c.confirmed); err != nil {
			problems = append(problems, fmt.Errorf("--confirmed %.80q is no time like 2026-01-31T00:00:00Z", c.confirmed))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, usageError{err.Error()}
	}
	made, err := retention.New(db, config)
	if err != nil {
		return nil, usageError{err.Error()}
	}
	return made, nil
}

// orNever is how the relay says nothing: to it, zero is the default.
func orNever(length time.Duration) time.Duration {
	if length == 0 {
		return -1
	}
	return length
}

func (c *pruneCommand) run(ctx context.Context, out io.Writer) error {
	if _, err := c.retention(nil, nil); err != nil {
		return err
	}
	pool, err := c.root.pool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	work := c.prune
	if c.dryRun {
		work = c.count
	}
	if err := work(ctx, out, pool); err != nil {
		return c.hint(fmt.Errorf("prune: %w", err))
	}
	return nil
}

// hint says what to do where there is no outbox, and how a setting that an error names is called here; what a role
// needs, retention says itself.
func (c *pruneCommand) hint(err error) error {
	if strings.Contains(err.Error(), "set Confirmed to ") { // what would go could not be counted in time
		return problem{code: "not_confirmed", exit: exitFailed, err: err, hint: "that is --confirmed here"}
	}
	if state := sqlState(nil); errors.As(err, &state) && state.SQLState() == "42501" {
		return problem{code: "permission_denied", exit: exitNotLetIn, err: err}
	}
	return c.root.hint(err, "janitor")
}

// prune deletes, and says how far it is.
func (c *pruneCommand) prune(ctx context.Context, out io.Writer, pool *pgxpool.Pool) error {
	began := time.Now()
	meter := &pruneMeter{out: out, every: c.progress, began: began, said: began}
	runner, err := c.retention(pool, meter.report)
	if err != nil {
		return err
	}
	if c.progress > 0 {
		// What cannot be counted in time is deleted without an estimate.
		due, err := runner.Due(ctx)
		meter.known = err == nil
		for _, kind := range due {
			if kind.Halted == "" {
				meter.due += kind.Rows
				meter.estimated = meter.estimated || kind.Estimated
			}
		}
	}
	meter.began = time.Now()
	result, err := runner.Once(ctx)
	var halted []string
	problems := []error{err}
	for _, halt := range result.Halted {
		halted = append(halted, halt.Kind)
		problems = append(problems, nothingDeleted(halt.Kind, halt.Reason))
	}
	if ctx.Err() != nil {
		problems = append(problems, errors.New("it was stopped; what was deleted stays so, and the next run goes on"))
	}
	line := figures.New("prune")
	line.Addf("published", "%d", result.Published)
	line.Addf("discarded", "%d", result.Discarded)
	line.Addf("dead", "%d", result.Dead)
	line.Addf("dedupe", "%d", result.Dedupe)
	line.Addf("batches", "%d", result.Batches)
	line.Addf("slowest_ms", "%.1f", float64(result.Slowest)/float64(time.Millisecond))
	line.Addf("rate", "%.0f", rate(gone(result), time.Since(meter.began)))
	line.Addf("busy", "%s", listed(result.Busy))
	return c.end(out, line, halted, began, problems)
}

// count says what would go.
func (c *pruneCommand) count(ctx context.Context, out io.Writer, pool *pgxpool.Pool) error {
	began := time.Now()
	runner, err := c.retention(pool, nil)
	if err != nil {
		return err
	}
	due, err := runner.Due(ctx)
	problems := []error{err}
	var halted []string
	line := figures.New("prune")
	for _, kind := range due {
		line.Addf(kind.Kind, "%d", kind.Rows)
		if err := say(out, "%s: %s %s, older than %s\n", kind.Kind, words(kind.Estimated),
			plural(int(kind.Rows), "row", "rows"), kind.CutOff.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		if kind.Halted != "" {
			halted = append(halted, kind.Kind)
			problems = append(problems, nothingDeleted(kind.Kind, kind.Halted))
		}
	}
	line.Addf("dry_run", "%t", true)
	return c.end(out, line, halted, began, problems)
}

// end prints the last line, and fails if something did.
func (c *pruneCommand) end(out io.Writer, line *figures.Line, halted []string, began time.Time,
	problems []error,
) error {
	problem := errors.Join(problems...)
	line.Addf("halted", "%s", listed(halted))
	line.Addf("seconds", "%.1f", time.Since(began).Seconds())
	line.Addf("ok", "%t", problem == nil)
	if err := say(out, "%s\n", line); err != nil {
		return err
	}
	return problem
}

// nothingDeleted names the flag where retention names its setting.
func nothingDeleted(kind, reason string) error {
	return fmt.Errorf("nothing of %s is deleted: %s", kind,
		strings.ReplaceAll(reason, "set Confirmed to ", "pass --confirmed "))
}

func listed(kinds []string) string {
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ",")
}

func gone(r retention.Result) int64 { return r.Published + r.Discarded + r.Dead + r.Dedupe }

func rate(rows int64, took time.Duration) float64 { return float64(rows) / max(took.Seconds(), 0.001) }

// pruneMeter says from time to time how far a run is.
type pruneMeter struct {
	out         io.Writer
	every       time.Duration
	began, said time.Time
	due         int64
	known       bool // whether due is
	estimated   bool // whether it is not exact
}

// words say how exact a count is: of dedupe keys some may stay.
func words(estimated bool) string {
	if estimated {
		return "about"
	}
	return "at most"
}

func (m *pruneMeter) report(result retention.Result) {
	if m.every == 0 || time.Since(m.said) < m.every {
		return
	}
	m.said = time.Now()
	done := gone(result)
	fast := rate(done, time.Since(m.began))
	text := fmt.Sprintf("prune: %s gone, %.0f rows/s", plural(int(done), "row is", "rows are"), fast)
	if m.known {
		left := time.Duration(float64(max(m.due-done, 0)) / max(fast, 0.001) * float64(time.Second))
		exact := words(m.estimated)
		text = fmt.Sprintf("prune: %d of %s %d rows are gone, %.0f rows/s, %s %s left", done, exact, m.due, fast, exact,
			left.Round(time.Second))
	}
	_, _ = fmt.Fprintln(m.out, text) // of no consequence: the last line is checked
}
