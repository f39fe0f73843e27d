// Command bench-drain measures how fast the relay drains an outbox, against the shortest loop that could
// do it and against a loop that leases rows, and how 1, 4 and 16 relay processes share the work.
//
// It prints tables and then one line of name=value figures. It fails when an event is lost, published out
// of order or not known, when a lane has no owner for longer than the lease, or when something is broken; a
// ratio of times never fails it. docs/internals/benchmarks.md tells how it measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// options are the flags.
type options struct {
	url, nats   string
	long, short bool
	only        string
	events      int
	pairs       int
	batch       int
	fleetEvents int
	fleetPairs  int
	killLease   time.Duration
	profile     string
	statements  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errMust):
		fmt.Fprintln(os.Stderr, "bench-drain:", err)
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "bench-drain:", err)
		os.Exit(2)
	}
}

// command is the whole run, or one relay of it: the command starts itself for those.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "relay" {
		member, err := drain.ParseMember(args[1:])
		if err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		return member.Run(ctx)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	return measure(ctx, o)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench-drain", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", services.Postgres18(),
		"server to measure on, on this machine, as a role that may create databases and checkpoint")
	flags.StringVar(&o.nats, "nats", services.NATS(), "NATS server with JetStream")
	flags.BoolVar(&o.long, "long", false,
		"the long form: more events, more pairs, every combination of relays, delay and aggregates")
	flags.BoolVar(&o.short, "short", false, "the short form: fewer events, and one turn of each; its ratios say little")
	flags.StringVar(&o.only, "only", "", "measure only one part: single, fleet")
	flags.IntVar(&o.events, "events", 0, "events of a drain (default 20,000, with -short 5,000, with -long 200,000)")
	flags.IntVar(&o.pairs, "pairs", 0, "turns of each subject (default 3, with -short 1, with -long 8)")
	flags.IntVar(&o.batch, "batch", 1000, "batch of the two loops; the relay has its default")
	flags.IntVar(&o.fleetEvents, "fleet-events", 0,
		"events of a drain by several processes (default 24,000, with -short 6,000, with -long 100,000)")
	flags.IntVar(&o.fleetPairs, "fleet-pairs", 0,
		"turns of each number of processes (default 2, with -short 1, with -long 6)")
	flags.DurationVar(&o.killLease, "kill-lease", 5*time.Second,
		"lease of the relays of which one is killed; the others have the default")
	flags.StringVar(&o.profile, "profile", "", "file for the CPU profile of the relay with typed contracts")
	flags.BoolVar(&o.statements, "statements", false,
		"print the costliest statements of every drain by relays, with pg_stat_statements")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.only != "" && o.only != "single" && o.only != "fleet" {
		return o, fmt.Errorf("-only: %q is neither single nor fleet", o.only)
	}
	return o.withDefaults(), nil
}

func (o options) withDefaults() options {
	set := func(value *int, short, full, long int) {
		switch {
		case *value != 0:
		case o.long:
			*value = long
		case o.short:
			*value = short
		default:
			*value = full
		}
	}
	set(&o.events, 5_000, 20_000, 200_000)
	set(&o.pairs, 1, 3, 8)
	set(&o.fleetEvents, 6_000, 24_000, 100_000)
	set(&o.fleetPairs, 1, 2, 6)
	return o
}

// run is one run of the command.
type run struct {
	options options
	env     *drain.Env
	nats    *drain.NATS
	folder  string // for journals
}

func measure(ctx context.Context, o options) (err error) {
	db, err := bench.NewDatabase(ctx, o.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if !db.SeesBackends(ctx) {
		return errors.New("the server's processes are not on this machine: CPU and times would mean nothing")
	}
	r := &run{options: o}
	if r.env, err = drain.NewEnv(ctx, db); err != nil {
		return err
	}
	if r.nats, err = drain.NewNATS(o.nats); err != nil {
		return err
	}
	// Not the run's context: the stream must go also when the run was interrupted.
	defer r.nats.Close(context.WithoutCancel(ctx))
	if r.folder, err = os.MkdirTemp("", "bench-drain-"); err != nil {
		return fmt.Errorf("a folder for journals: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.folder)) }()
	found := &findings{options: o, figures: figures.New("bench-drain")}
	if err := r.env.DB.Control.QueryRow(ctx,
		"SELECT 'PostgreSQL ' || current_setting('server_version'), current_setting('wal_level')").
		Scan(&found.server, &found.walLevel); err != nil {
		return fmt.Errorf("version: %w", err)
	}
	if o.only != "fleet" {
		if found.single, err = r.single(ctx); err != nil {
			return err
		}
		if found.quiet, err = drain.QuietCosts(ctx); err != nil {
			return err
		}
	}
	if o.only != "single" {
		if found.fleets, err = r.fleets(ctx); err != nil {
			return err
		}
	}
	return found.print(os.Stdout)
}
