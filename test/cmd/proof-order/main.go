// Command proof-order proves that the order of every aggregate is kept, and that nothing is lost, invented
// or changed, by a fleet of relays that join, leave, are killed and stand still, between a real PostgreSQL
// and a real NATS JetStream. It ends with one line of name=value figures.
//
// It fails when the checker found something broken and when too little was tested. Then the histories are
// kept, and the command says where; -check reads them again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/order"
)

func main() { os.Exit(command.Main("proof-order", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay.
	if len(args) == 2 && args[0] == "relay" {
		return true, torture.RunRelay(ctx, args[1], torture.Relay)
	}
	flags := flag.NewFlagSet("proof-order", flag.ContinueOnError)
	short := flags.Bool("short", false, "300 aggregates and 6,000 events instead of 2,000 and 50,000")
	seed := flags.Uint64("seed", 0, "what producers, chaos and operators draw from; the timing is the machine's. "+
		"Defaults to 1 for the short form, and to another every time")
	bug := flags.String("mutant", "", "a mistake of the publishers, to see the proof fail: "+
		"swap, drop, alter, twice or invent")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	histories := flags.String("check", "", "a folder of histories to check once more, instead of a run")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *histories != "" {
		return order.CheckAgain(os.Stdout, "", *histories)
	}
	plan := order.Long()
	if *short {
		plan = order.Short()
	}
	plan.Seed, plan.Mutant = command.Seed(*seed, *short), *bug
	plan.Postgres, plan.Broker = services.Postgres18(), services.NATS()
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	what := fmt.Sprintf("seed %d, histories", plan.Seed)
	return command.InFolder(order.Name, what, *keep, func(folder string, to io.Writer) (bool, error) {
		plan.Folder = folder
		report, err := torture.Run(ctx, plan, os.Stderr)
		if err != nil {
			return false, err
		}
		return report.OK(), report.Print(to)
	})
}
