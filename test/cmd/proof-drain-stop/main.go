// Command proof-drain-stop proves that a publisher stops cleanly in the middle of its work: two outbox-publishers move
// events from PostgreSQL to NATS, and one after the other gets a SIGTERM and is replaced, a hundred times. No event is
// sent twice or lost, every stop ends with exit code 0 within the drain time, and the other has the lanes at once. It
// ends with one line of name=value figures.
//
// It fails when something was broken and when too little was tested. Then histories and logs are kept, and the command
// says where.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

func main() { os.Exit(command.Main("proof-drain-stop", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-drain-stop", flag.ContinueOnError)
	short := flags.Bool("short", false, "10 stops instead of 100")
	binary := flags.String("binary", "bin/outbox-publisher", "the program")
	keep := flags.Bool("keep", false, "keep histories and logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := publisher.LongStops()
	if *short {
		plan = publisher.ShortStops()
	}
	plan.Binary, plan.Postgres, plan.NATS = *binary, services.Postgres18(), services.NATS()
	return command.InFolder("proof-drain-stop", "histories and logs", *keep,
		func(folder string, to io.Writer) (bool, error) {
			plan.Folder = folder
			report, err := publisher.StopAll(ctx, plan, os.Stderr)
			if err != nil {
				return false, err
			}
			return report.Print(to)
		})
}
