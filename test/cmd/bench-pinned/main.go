// Command bench-pinned measures whether the relay slows down while somebody keeps the database from cleaning
// up: 3,000 events/s, or less on a machine that cannot do more, unpinned, under an idle snapshot, and behind a
// transaction that wrote an event and stays open. The last two run once more without the watermark, which must fail.
//
// It first makes 1,000,000 dead tuples under each pin; -long takes half an hour for each kind instead, and -short
// takes seconds: then the number of pages that a read looks at decides, and times do not. It prints a table and then
// one line of name=value figures, and fails when a must is missed.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/pinned"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func main() { os.Exit(command.Main("bench-pinned", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("bench-pinned", flag.ContinueOnError)
	url := flags.String("url", services.Postgres18(), "server to measure on, as a role that may create databases")
	long := flags.Bool("long", false, "half an hour for each kind, without dead tuples made beforehand")
	short := flags.Bool("short", false, "seconds for each kind, and 50,000 dead tuples; times decide nothing")
	seconds := flags.Int("seconds", 0, "how long each kind is measured (default 60, with -long 1800)")
	dead := flags.Int("dead", -1, "dead tuples to make under each pin (default 1,000,000, with -long 0)")
	rate := flags.Int("rate", 0, "events per second at most (default 3,000)")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := pinned.Full()
	if *short {
		plan = pinned.Short()
	}
	if *long {
		plan = pinned.Long()
	}
	plan.URL = *url
	if *seconds > 0 {
		plan.Length = time.Duration(*seconds) * time.Second
		plan.Control = min(plan.Control, plan.Length)
	}
	if *dead >= 0 {
		plan.Dead = *dead
	}
	if *rate > 0 {
		plan.Rate = *rate
	}
	report, err := pinned.Run(ctx, plan, pinned.Relay, os.Stderr)
	if err != nil {
		return false, err
	}
	return len(report.Problems()) == 0, report.Print(os.Stdout)
}
