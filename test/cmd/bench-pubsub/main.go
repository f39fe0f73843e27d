// Command bench-pubsub measures how fast one topic of Pub/Sub takes events of 256 aggregates with a round trip of
// 30 ms. As many requests must be under way as there are aggregates, and the rate must be nine tenths of what the round
// trip allows.
//
// -short takes ten seconds: then times decide nothing. It prints a table and then one line of name=value figures, and
// fails when a must is missed.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/posthaste-dev/posthaste/test/bench/pubsub"
	"github.com/posthaste-dev/posthaste/test/kit/command"
)

func main() { os.Exit(command.Main("bench-pubsub", measure)) }

func measure(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("bench-pubsub", flag.ContinueOnError)
	short := flags.Bool("short", false, "ten seconds; times decide nothing")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := pubsub.Full()
	if *short {
		plan = pubsub.Short()
	}
	report, err := pubsub.Run(ctx, plan)
	if err != nil {
		return false, err
	}
	return len(report.Problems()) == 0, report.Print(os.Stdout)
}
