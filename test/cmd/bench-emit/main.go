// Command bench-emit measures what emitting an event costs the transaction that does it: a transaction
// of three statements with our emit as the third, against the same with a bare INSERT of the same JSON.
//
// It prints a table of ratios and then one line of name=value figures. It fails when something is
// broken, when a figure that does not vary (WAL, round trips) is beyond its limit, or when too little was
// measured; a ratio of times never fails it. docs/internals/benchmarks.md tells how it measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// options are the flags.
type options struct {
	url     string
	long    bool
	short   bool
	costs   bool
	clients []int
	rounds  int
	block   time.Duration
	settle  time.Duration
	rows    int
	walRuns int
	zipf    float64
	csv     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errGoals):
		fmt.Fprintln(os.Stderr, "bench-emit:", err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "bench-emit:", err)
		os.Exit(2)
	}
}

func parse(args []string) (options, error) {
	var o options
	var duration time.Duration
	flags := flag.NewFlagSet("bench-emit", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", services.Postgres18(),
		"server to measure on, as a role that may create databases and checkpoint")
	flags.BoolVar(&o.long, "long", false, "the long form, with all drivers and the cost of every index")
	flags.BoolVar(&o.short, "short", false,
		"the short form: few rounds, whose ratios say little; what does not vary is counted as always")
	flags.BoolVar(&o.costs, "indexes", false, "measure what each index and the trigger cost (part of -long)")
	clients := flags.String("clients", "8,32", "numbers of clients for throughput")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of a phase (default 14, with -short 3, with -long 32)")
	flags.DurationVar(&duration, "duration", 0, "about how long all turns together shall take; sets -rounds")
	flags.DurationVar(&o.block, "block", 100*time.Millisecond,
		"length of a turn; short, so that a round is over before the machine's mood changes")
	flags.DurationVar(&o.settle, "settle", 20*time.Millisecond, "how long a turn runs before it is measured")
	flags.IntVar(&o.rows, "rows", 20_000, "rows in every table before the start")
	flags.IntVar(&o.walRuns, "wal-transactions", 2000, "transactions over which WAL is counted")
	flags.Float64Var(&o.zipf, "zipf", 1.1, "skew of the aggregates over 10,000; 0 is uniform")
	flags.StringVar(&o.csv, "csv", "", "file for the figures of every single turn")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(*clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-clients: %q is not a list of numbers", *clients)
		}
		o.clients = append(o.clients, n)
	}
	return o.withDefaults(duration), nil
}

func (o options) withDefaults(duration time.Duration) options {
	o.costs = o.costs || o.long
	if duration > 0 && o.rounds == 0 {
		for o.rounds = 3; o.planned() < duration; {
			o.rounds++
		}
	}
	switch {
	case o.rounds > 0:
	case o.long:
		o.rounds = 32
	case o.short:
		o.rounds = 3
	default:
		o.rounds = 14
	}
	return o
}

// planned is how long all turns take together.
func (o options) planned() time.Duration {
	var total time.Duration
	for _, p := range o.plan() {
		total += o.length(p)
	}
	if o.costs {
		total += o.length(costPhase(1)) + o.length(costPhase(manyEvents))
	}
	return total
}

// run is one run of the command.
type run struct {
	options  options
	env      *env
	wal      *bench.WALMeter
	raw      *bench.RawWriter
	progress *bench.Progress
	seesCPU  bool
}

func command(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	r := &run{options: o}
	if o.csv != "" {
		file, err := os.Create(o.csv)
		if err != nil {
			return fmt.Errorf("-csv: %w", err)
		}
		defer file.Close()
		if r.raw, err = bench.NewRawWriter(file); err != nil {
			return err
		}
	}
	db, err := bench.NewDatabase(ctx, o.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r.seesCPU = db.SeesBackends(ctx)
	if r.wal, err = bench.NewWALMeter(ctx, db); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench-emit: filling the tables; about %s of turns follow\n", o.planned().Round(time.Second))
	if r.env, err = newEnv(ctx, db, o.zipf, o.rows); err != nil {
		return err
	}
	if o.long {
		if err := r.installBound(ctx); err != nil {
			return err
		}
	}
	found, err := r.all(ctx)
	if err != nil {
		return err
	}
	return found.print(os.Stdout)
}

// all measures everything, what cannot vary first.
func (r *run) all(ctx context.Context) (*findings, error) {
	found := &findings{options: r.options, seesCPU: r.seesCPU, samples: map[string][]bench.Sample{}}
	var err error
	if found.server, err = r.describe(ctx); err != nil {
		return nil, err
	}
	if found.trips, err = r.countTrips(ctx); err != nil {
		return nil, err
	}
	if found.wal, err = r.countWAL(ctx, []string{noEvent, bare, bareAgain, emitOne, emitKeyed},
		r.options.walRuns); err != nil {
		return nil, err
	}
	if found.walMany, err = r.countWAL(ctx, []string{bareMany, bareUnnest, emitMany, emitManyKeyed},
		max(r.options.walRuns/manyEvents, 5)); err != nil {
		return nil, err
	}
	r.progress = bench.NewProgress(os.Stderr, "bench-emit", r.options.planned())
	for _, p := range r.options.plan() {
		if found.samples[p.name], err = r.measure(ctx, p); err != nil {
			return nil, err
		}
	}
	if r.options.costs {
		if found.costs, err = r.measureCosts(ctx); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// describe says what the figures were measured on.
func (r *run) describe(ctx context.Context) (string, error) {
	var text string
	err := r.env.db.Control.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version') || ', fsync ' 
		|| current_setting('fsync')
		|| ', synchronous_commit ' || current_setting('synchronous_commit') || ', full_page_writes ' 
		|| current_setting('full_page_writes')
		|| ', wal_level ' || current_setting('wal_level')`).Scan(&text)
	return text, err
}
