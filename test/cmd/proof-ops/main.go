// Command proof-ops proves that many events can be repaired and sent again without fear: 100,000 dead letters of 5,000
// aggregates, some of them blocked, are redriven, and as many published events are sent to a second topic, at a set
// rate and while 500 live events per second flow, against a real PostgreSQL. The terminal that starts a job goes away,
// its workers are killed in the middle of a part, the same is asked for twice, and a viewer tries all of it.
//
// It prints a table and then one line of name=value figures, and fails when a must is missed or too little was tested.
// With -short counts decide, and what live events feel is printed.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	points "github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/ops"
)

func main() { os.Exit(command.Main("proof-ops", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The processes that die are this program, built with the tag crash.
	if len(args) == 2 && args[0] == "live" {
		return true, ops.Live(ctx, args[1])
	}
	flags := flag.NewFlagSet("proof-ops", flag.ContinueOnError)
	short := flags.Bool("short", false, "4,000 dead letters and 100 live events per second instead of 100,000 and 500")
	url := flags.String("url", services.Postgres18(), "server to prove it on, as a role that may create databases")
	keep := flags.Bool("keep", false, "keep what the processes said also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := ops.Long()
	if *short {
		plan = ops.Short()
	}
	plan.URL = *url
	return command.InFolder("proof-ops", "what the processes said", *keep,
		func(folder string, to io.Writer) (_ bool, err error) {
			plan.Folder = folder
			if plan.Executable, err = os.Executable(); !points.Built {
				plan.Executable, err = ops.Build(ctx, folder)
			}
			if err != nil {
				return false, err
			}
			report, err := ops.Run(ctx, plan, os.Stderr)
			if err != nil {
				return false, err
			}
			return report.OK(), report.Print(to)
		})
}
