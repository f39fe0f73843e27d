// Command outbox-torture does to an outbox on your PostgreSQL and your broker what machines, networks and operators
// do, in a schema and topics of its own, and says what came of it. See the page docs/operate/torture.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
)

const usage = `outbox-torture runs relays and producers between your PostgreSQL and your broker, kills and cuts and ` +
	`stalls
them, and checks whether an event was lost, invented, changed, reordered or charged for what was not its fault.

  outbox-torture -postgres URL -broker ADDRESS [-duration 2m] [-report FILE.md]

It works in a schema and topics of its own, says beforehand what it will create, and removes it in the end. It ends
only its own processes and its own sessions. It needs no superuser: the role needs CREATE on the database.

  A minute on this machine:
    outbox-torture -postgres postgres://app@127.0.0.1:5432/app -broker nats://127.0.0.1:4222 -duration 1m
  Over Google Pub/Sub's emulator, with a report:
    outbox-torture -postgres postgres://app@127.0.0.1/app -broker 'pubsub://project?emulator=127.0.0.1:8085' \
      -report torture.md
  On a staging database elsewhere, five relays, 500 events per second:
    outbox-torture -postgres postgres://app@db.staging/app -broker tls://nats.staging:4222 -relays 5 -rate 500 -yes
  See it fail, because the publisher drops messages:
    outbox-torture -postgres URL -broker ADDRESS -mutant drop

It exits with 0 when nothing was broken, 1 when something was or too little was tested, 2 when it could not run.

Flags:
`

func main() {
	// A second Ctrl-C ends the process at once: stop gives it back its default meaning.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// settings are the flags.
type settings struct {
	postgres, broker string
	duration, lease  time.Duration
	relays           int
	producers        int
	rate             int
	seed             uint64
	report, mutant   string
	histories        string
	yes, verbose     bool
}

func parse(args []string, stdout io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("outbox-torture", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.postgres, "postgres", "", "`URL` of a database: postgres://user@host:port/database (required)")
	flags.StringVar(&s.broker, "broker", "",
		"`address`: nats://host:port, tls://host:port, pubsub://project or pubsub://project?emulator=host:port (required)")
	flags.DurationVar(&s.duration, "duration", 2*time.Minute, "how long producers write; at least 10s")
	flags.IntVar(&s.relays, "relays", 3, "how many relays run; at least 2")
	flags.IntVar(&s.producers, "producers", 8, "how many producers write")
	flags.IntVar(&s.rate, "rate", 200, "`events` per second")
	flags.DurationVar(&s.lease, "lease", 3*time.Second, "how long a relay's lease of a lane lasts")
	flags.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()),
		"what everything is drawn from; the timing is the machine's")
	flags.StringVar(&s.report, "report", "", "a Markdown `file` for the report")
	flags.StringVar(&s.histories, "histories", "",
		"an empty `folder` to keep the recorded histories in; otherwise they are kept only when something was broken")
	flags.StringVar(&s.mutant, "mutant", "",
		"a `bug` to put into the publisher, to see it found: drop, alter, twice or swap")
	flags.BoolVar(&s.yes, "yes", false, "go ahead although the database or the broker is on another machine")
	flags.BoolVar(&s.verbose, "v", false, "say every single fault")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return s, flag.ErrHelp
	}
	if err != nil {
		return s, fmt.Errorf("%w; -h explains", err)
	}
	return s, s.check(flags.Args())
}

// check reports everything that is wrong with the flags at once.
func (s settings) check(rest []string) error {
	var problems []error
	problemIf := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problemIf(len(rest) > 0, "unexpected argument %q", rest)
	problemIf(s.postgres == "", "say which database: -postgres postgres://user@host:port/database")
	problemIf(s.broker == "", "say which broker: -broker nats://host:port")
	problemIf(s.duration < 10*time.Second, "-duration is %s: at least 10s, or nothing can happen", s.duration)
	problemIf(s.relays < 2, "-relays is %d: at least 2, or nobody takes over", s.relays)
	problemIf(s.producers < 1 || s.rate < 1, "-producers and -rate must be at least 1")
	problemIf(s.mutant != "" && !slices.Contains(torture.Mutants(), s.mutant), "no mutant is called %q: there are %s",
		s.mutant,
		strings.Join(torture.Mutants(), ", "))
	problemIf(s.lease < time.Second || s.lease > 30*time.Second, "-lease is %s: between 1s and 30s", s.lease)
	return errors.Join(problems...)
}

// The exit codes.
const (
	fine     = 0
	broken   = 1
	couldNot = 2
)

// command does everything and returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[0] == "relay" { // one process of a relay; see package torture
		if err := torture.RunRelay(ctx, args[1], torture.Relay); err != nil {
			_, _ = fmt.Fprintln(stderr, err)
			return broken
		}
		return fine
	}
	s, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return fine
	}
	var report *torture.Report
	if err == nil {
		report, err = run(ctx, s, stdout, stderr)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		_, _ = fmt.Fprintln(stderr, "outbox-torture: interrupted; the schema and the topics are removed")
		return couldNot
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "outbox-torture: %v\n", err)
		return couldNot
	case !report.OK():
		return broken
	default:
		return fine
	}
}

// run plays the run and says what came of it.
func run(ctx context.Context, s settings, stdout, stderr io.Writer) (_ *torture.Report, err error) {
	where, err := look(ctx, s)
	if err != nil {
		return nil, err
	}
	folder := s.histories
	if folder == "" {
		if folder, err = os.MkdirTemp("", "outbox-torture-"); err != nil {
			return nil, fmt.Errorf("a folder for the histories: %w", err)
		}
	} else if found, err := os.ReadDir(folder); err == nil && len(found) > 0 {
		return nil, fmt.Errorf("-histories %s: the folder is not empty", folder)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, fmt.Errorf("-histories: %w", err)
	}
	ways, err := openWays(s, where) //nolint:contextcheck // listening does not wait
	if err != nil {
		return nil, err
	}
	defer ways.close()
	plan, err := ways.plan(s, folder)
	if err != nil {
		return nil, err
	}
	where.announce(stderr, s, plan, ways)
	began := time.Now()
	report, err := torture.Run(ctx, plan, stderr)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := printResult(report, plan, s, where, began, folder, stdout); err != nil {
		return nil, err
	}
	if report.OK() && s.histories == "" {
		if err := os.RemoveAll(folder); err != nil {
			return nil, fmt.Errorf("remove the histories: %w", err)
		}
	}
	return report, nil
}
