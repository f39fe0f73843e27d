// Command proof-inbox shows that a consumer neither acts twice nor loses an event, whatever becomes of its process, of the
// broker's acknowledgements and of Redis: faults I1 to I16. Consumers run as processes of their own between a real NATS
// JetStream, PostgreSQL and Redis, and are killed at every point and at random. It lists the faults with what shows each, and
// ends with one line of name=value figures.
//
// It fails when the judge found something broken, when a fault was not shown, and when too little was tested. Then the
// journals are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	points "github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/inboxstorm"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

func main() { os.Exit(command.Main("proof-inbox", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The processes that die are this program, built with the tag crash.
	if len(args) == 2 && args[0] == "live" {
		return true, inboxstorm.Live(ctx, args[1])
	}
	flags := flag.NewFlagSet("proof-inbox", flag.ContinueOnError)
	short := flags.Bool("short", false, "a tenth of the events")
	scenes := flags.String("scenes", strings.Join(inboxstorm.Scenes(), ","), "the scenes to play; others than all show nothing but themselves")
	results := flags.String("results", "", "read what became of the tests from this `file` of scripts/test --keep, and run none")
	keep := flags.Bool("keep", false, "keep the journals also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := inboxstorm.Long()
	if *short {
		plan = inboxstorm.Short()
	}
	if chosen := strings.Split(*scenes, ","); len(chosen) < len(plan.Scenes) {
		plan.Scenes, plan.Tests = chosen, false
	}
	plan.Results = *results
	plan.Postgres = pgtest.Servers()[0].URL
	plan.Broker = "nats://127.0.0.1:14222"
	if at := os.Getenv("POSTHASTE_NATS_URL"); at != "" {
		plan.Broker = at
	}
	return try(ctx, plan, *keep)
}

func try(ctx context.Context, plan inboxstorm.Plan, keep bool) (ok bool, err error) {
	if plan.Folder, err = os.MkdirTemp("", "proof-inbox-"); err != nil {
		return false, fmt.Errorf("a folder for the journals: %w", err)
	}
	fmt.Fprintf(os.Stderr, "proof-inbox: journals in %s\n", plan.Folder)
	if points.Built {
		plan.Executable, err = os.Executable()
	} else {
		plan.Executable, err = inboxstorm.Build(ctx, plan.Folder)
	}
	if err != nil {
		return false, err
	}
	report, err := inboxstorm.Run(ctx, plan, os.Stderr)
	if err != nil {
		return false, err
	}
	if report.OK() && !keep {
		if err := os.RemoveAll(plan.Folder); err != nil {
			return false, fmt.Errorf("remove the journals: %w", err)
		}
	}
	return report.OK(), report.Print(os.Stdout)
}
