// Command proof-inbox shows that a consumer neither acts twice nor loses an event, whatever becomes of its process, of
// the broker's acknowledgements and of Redis: faults I1 to I16. Consumers run as processes of their own between a real
// NATS JetStream, PostgreSQL and Redis, and are killed at every point and at random. It lists the faults with what
// shows each, and ends with one line of name=value figures.
//
// It fails when the checker found something broken, when a fault was not shown, and when too little was tested. Then
// the journals are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"strings"

	points "github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/inbox"
)

func main() { os.Exit(command.Main("proof-inbox", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The processes that die are this program, built with the tag crash.
	if len(args) == 2 && args[0] == "live" {
		return true, inbox.Live(ctx, args[1])
	}
	flags := flag.NewFlagSet("proof-inbox", flag.ContinueOnError)
	short := flags.Bool("short", false, "a tenth of the events")
	wanted := flags.String("scenes", strings.Join(inbox.Scenarios(), ","),
		"the scenes to play; others than all show nothing but themselves")
	results := flags.String("results", "",
		"read what became of the tests from this `file` of scripts/test --keep, and run none")
	keep := flags.Bool("keep", false, "keep the journals also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := inbox.Long()
	if *short {
		plan = inbox.Short()
	}
	if chosen := strings.Split(*wanted, ","); len(chosen) < len(plan.Scenarios) {
		plan.Scenarios, plan.Tests = chosen, false
	}
	plan.Results = *results
	plan.Postgres, plan.Broker = services.Postgres18(), services.NATS()
	return command.InFolder("proof-inbox", "journals", *keep, func(folder string, to io.Writer) (_ bool, err error) {
		plan.Folder = folder
		if plan.Executable, err = os.Executable(); !points.Built {
			plan.Executable, err = inbox.Build(ctx, folder)
		}
		if err != nil {
			return false, err
		}
		report, err := inbox.Run(ctx, plan, os.Stderr)
		if err != nil {
			return false, err
		}
		return report.OK(), report.Print(to)
	})
}
