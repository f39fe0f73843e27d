// Command bench-growth measures whether a relay stays within its bounds as an outbox grows: 3,000,000 events of a topic
// that is down beside one that comes back, a million dead events in front of their aggregates, a million parked ones,
// 20,000 type names that nobody knows. No statement may fail, a row must cost what it costs at a tenth of the size,
// lanes open within the lease, and the relay's memory and the events of other topics keep their bounds.
//
// -short takes a tenth: then times decide nothing. It prints a table and then one line of name=value figures, and fails
// when a must is missed.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/posthaste-dev/posthaste/test/bench/growth"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func main() { os.Exit(command.Main("bench-growth", measure)) }

func measure(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("bench-growth", flag.ContinueOnError)
	url := flags.String("url", services.Postgres18(), "server to measure on, as a role that may create databases")
	short := flags.Bool("short", false, "a tenth of the size; times decide nothing")
	scale := flags.Int("scale", 0, "divides the sizes (default 1, with -short 10)")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := growth.Full()
	if *short {
		plan = growth.Short()
	}
	if *scale > 0 {
		plan.Scale = *scale
	}
	plan.URL = *url
	report, err := growth.Run(ctx, plan, growth.Relay, os.Stderr)
	if err != nil {
		return false, err
	}
	return len(report.Problems()) == 0, report.Print(os.Stdout)
}
