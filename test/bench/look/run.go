package look

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/console"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

//go:embed sql/*.sql
var files embed.FS

// run is one run of the benchmark.
type run struct {
	plan  Plan
	db    *bench.Outbox
	say   io.Writer
	began time.Time
	words *strings.Replacer // ids that are in the outbox
	pool  *pgxpool.Pool     // the console's
	// opened is how many screens somebody has opened while events flowed.
	opened int
}

// Run fills an outbox and asks each command.
func Run(ctx context.Context, plan Plan, say io.Writer) (report *Report, err error) {
	db, err := bench.NewOutbox(ctx, plan.URL, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &run{plan: plan, db: db, say: say, began: time.Now()}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	if r.pool, err = console.OpenPool(ctx, db.URL); err != nil {
		return nil, fmt.Errorf("look: %w", err)
	}
	defer r.pool.Close()
	report = &Report{Plan: plan}
	if report.WALBefore, err = r.emitWAL(ctx); err != nil {
		return nil, err
	}
	added := false
	for _, c := range everything() {
		if c.needs != "" && !added {
			added = true
			r.sayf("the optional look-ups are added")
			if _, err := r.call(ctx, nil, "migrate", "lookups", "add"); err != nil {
				return nil, err
			}
			if report.WALAfter, err = r.emitWAL(ctx); err != nil {
				return nil, err
			}
		}
		found, err := r.measure(ctx, c)
		if err != nil {
			return nil, err
		}
		report.Commands = append(report.Commands, found)
	}
	if plan.Pairs > 0 {
		if err := r.watched(ctx, report); err != nil {
			return nil, err
		}
	}
	report.Took = time.Since(r.began)
	return report, nil
}

// watched measures consoles that are left open, at rest and while events flow.
func (r *run) watched(ctx context.Context, report *Report) (err error) {
	if err := r.db.Exec(ctx, settled...); err != nil {
		return err
	}
	if report.Open, err = r.rest(ctx); err != nil {
		return err
	}
	report.Flows, report.Lost, report.screens, err = r.flow(ctx)
	return err
}

func (r *run) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.say, "%4.0f s  "+format+"\n", append([]any{time.Since(r.began).Seconds()}, args...)...)
}

// fill makes the events. Their two indexes beside the key are built afterwards, which is faster.
func (r *run) fill(ctx context.Context) error {
	r.sayf("%d events are made", r.plan.Events)
	if err := r.db.Exec(ctx, "ALTER TABLE public.outbox_events SET (autovacuum_enabled = off)",
		"DROP INDEX public.outbox_events_id", "DROP INDEX public.outbox_events_aggregate"); err != nil {
		return err
	}
	text, err := files.ReadFile("sql/fill.sql")
	if err != nil {
		return fmt.Errorf("look: %w", err)
	}
	if _, err := r.db.Control.Exec(ctx, string(text), r.plan.Events); err != nil {
		return fmt.Errorf("look: fill: %w", err)
	}
	r.sayf("their indexes are built")
	rest, err := files.ReadFile("sql/rest.sql")
	if err != nil {
		return fmt.Errorf("look: %w", err)
	}
	if err := r.db.Exec(ctx, "CREATE INDEX outbox_events_id ON public.outbox_events (id)",
		"CREATE INDEX outbox_events_aggregate ON public.outbox_events (aggregate_type, aggregate_id)", string(rest),
		"ALTER TABLE public.outbox_events RESET (autovacuum_enabled)", "VACUUM (ANALYZE) public.outbox_events",
		"ANALYZE"); err != nil {
		return err
	}
	return r.name(ctx)
}

// name picks the events that commands ask for.
func (r *run) name(ctx context.Context) error {
	var published, dead, waiting, ready, aggregate, from, to string
	if err := r.db.Control.QueryRow(ctx, `SELECT
		(SELECT id::text FROM public.outbox_events WHERE seq = $1::bigint / 2),
		(SELECT event_id::text FROM public.outbox_dlq ORDER BY id LIMIT 1),
		(SELECT id::text FROM public.outbox_events WHERE aggregate_type = 'order' AND aggregate_id = 'blocked'
		  ORDER BY seq DESC LIMIT 1),
		(SELECT id::text FROM public.outbox_events WHERE aggregate_type = 'order' AND aggregate_id = 'busy'
		  ORDER BY seq DESC LIMIT 1),
		(SELECT aggregate_type || '/' || aggregate_id FROM public.outbox_events WHERE seq = $1::bigint / 3),
		to_char((now() - interval '10 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
		to_char((now() - interval '239 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`, r.plan.Events).
		Scan(&published, &dead, &waiting, &ready, &aggregate, &from, &to); err != nil {
		return fmt.Errorf("look: names: %w", err)
	}
	r.words = strings.NewReplacer("{published}", published, "{dead}", dead, "{waiting}", waiting, "{ready}", ready,
		"{aggregate}", aggregate, "{order}", strings.TrimPrefix(aggregate, "order/"), "{hour}", from+".."+to,
		"{missing}", outbox.NewID().String())
	return nil
}

// call runs outboxctl, and returns how long it took. It must end with one of these exit codes.
func (r *run) call(ctx context.Context, exits []int, args ...string) (time.Duration, error) {
	command := exec.CommandContext(ctx, r.plan.Binary, args...)
	command.Env = []string{"POSTHASTE_DATABASE_URL=" + r.db.URL}
	var said bytes.Buffer
	command.Stderr = &said
	begun := time.Now()
	if err := command.Run(); err != nil && !slices.Contains(exits, command.ProcessState.ExitCode()) {
		return 0, fmt.Errorf("look: outboxctl %q: %w: %s", args, err, said.String())
	}
	return time.Since(begun), nil
}

// measure asks one command several times. The first one may have to read from disk.
func (r *run) measure(ctx context.Context, c command) (Found, error) {
	args := slices.Clone(c.args)
	for i := range args {
		args[i] = r.words.Replace(args[i])
	}
	var times []time.Duration
	if err := r.db.CountPages(ctx); err != nil {
		return Found{}, err
	}
	for range runs {
		var took time.Duration
		var err error
		if c.screen() {
			took, err = r.first(ctx, c.path)
		} else {
			took, err = r.call(ctx, c.exits, args...)
		}
		if err != nil {
			return Found{}, err
		}
		times = append(times, took)
	}
	pages, err := r.db.PagesOf(ctx, "")
	if err != nil {
		return Found{}, err
	}
	slices.Sort(times)
	found := Found{command: c, Time: times[runs/2], Worst: times[runs-1], Pages: pages.Pages / runs}
	if found.Database, err = r.inDatabase(ctx); err != nil {
		return found, err
	}
	r.sayf("%s: %s, %d pages", c.name, found.Time.Round(time.Millisecond), found.Pages)
	return found, nil
}

// inDatabase is how long the statements of one call took, on the average.
func (r *run) inDatabase(ctx context.Context) (time.Duration, error) {
	var milliseconds float64
	if err := r.db.Control.QueryRow(ctx, `SELECT coalesce(sum(total_exec_time), 0) FROM public.pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND query NOT LIKE '%pg_stat_statements%'`).Scan(&milliseconds); err != nil {
		return 0, fmt.Errorf("look: times: %w", err)
	}
	return time.Duration(milliseconds / runs * float64(time.Millisecond)), nil
}

// emitWAL is how many bytes of the log one emit writes, without images of pages.
func (r *run) emitWAL(ctx context.Context) (float64, error) {
	const emits = 500
	meter, err := bench.NewWALMeter(ctx, r.db.Database)
	if err != nil {
		return 0, err
	}
	registered := outbox.Define[map[string]int](outbox.Contract{
		Type: "order_event_1", Aggregate: "order", Topic: "orders",
	})
	written, err := meter.Measure(ctx, func(ctx context.Context) error {
		for i := range emits {
			tx, err := r.db.Producers.Begin(ctx)
			if err != nil {
				return fmt.Errorf("look: %w", err)
			}
			if _, err := outbox.Emit(ctx, tx, registered.New(fmt.Sprint("w", i), map[string]int{"n": i})); err != nil {
				return errors.Join(err, tx.Rollback(ctx))
			}
			if err := tx.Commit(ctx); err != nil {
				return fmt.Errorf("look: %w", err)
			}
		}
		return nil
	})
	return float64(written.Data()) / emits, err
}
