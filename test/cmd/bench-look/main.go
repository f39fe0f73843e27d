// Command bench-look measures what it takes to look at an outbox of 10,000,000 events with outboxctl and the console:
// every command must answer within a second, and the look-ups by aggregate, by time of publishing and, with its
// optional index, by event type within 100 ms, as must every screen of the console. It counts the pages that each
// reads, and what the optional index costs an emit. Then it leaves ten consoles open while nothing happens, and lets
// somebody open one screen after the other beside them while 1,000 events per second flow.
//
// -short takes 500,000 events: then pages decide, times do not, and nothing flows. It prints a table and then one line
// of name=value figures, and fails when a must is missed.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/posthaste-dev/posthaste/test/bench/look"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func main() { os.Exit(command.Main("bench-look", measure)) }

func measure(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("bench-look", flag.ContinueOnError)
	url := flags.String("url", services.Postgres18(), "server to measure on, as a role that may create databases")
	binary := flags.String("outboxctl", "bin/outboxctl", "the program that looks")
	short := flags.Bool("short", false, "500,000 events; pages decide and times do not")
	events := flags.Int("events", 0, "how many events (default 10000000, with -short 500000)")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := look.Full()
	if *short {
		plan = look.Short()
	}
	if *events > 0 {
		plan.Events = *events
	}
	plan.URL, plan.Binary = *url, *binary
	report, err := look.Run(ctx, plan, os.Stderr)
	if err != nil {
		return false, err
	}
	return len(report.Problems()) == 0, report.Print(os.Stdout)
}
