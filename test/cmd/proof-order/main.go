// Command proof-order proves that the order of every aggregate is kept, and that nothing is lost, invented
// or changed, by a fleet of relays that join, leave, are killed and stand still, between a real PostgreSQL
// and a real NATS JetStream. It ends with one line of name=value figures.
//
// It fails when the judge found something broken and when too little was tested. Then the histories are
// kept, and the command says where; -judge reads them again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/order"
	"github.com/posthaste-dev/posthaste/test/pgtest"
	"github.com/posthaste-dev/posthaste/torture"
)

func main() { os.Exit(command.Main("proof-order", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay.
	if len(args) == 2 && args[0] == "relay" {
		return true, torture.Live(ctx, args[1], torture.Relay)
	}
	flags := flag.NewFlagSet("proof-order", flag.ContinueOnError)
	short := flags.Bool("short", false, "300 aggregates and 6,000 events instead of 2,000 and 50,000")
	seed := flags.Uint64("seed", 0, "what producers, chaos and operators draw from; the timing is the machine's. Defaults to 1 for the short form, and to another every time")
	plant := flags.String("plant", "", "a bug to put into the publishers, to see the proof fail: swap, drop, alter or twice")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	judge := flags.String("judge", "", "a folder of histories to judge once more, instead of a run")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *judge != "" {
		return judgeAgain(*judge)
	}
	plan := order.Long()
	if *short {
		plan = order.Short()
	}
	if *seed == 0 {
		if *seed = 1; !*short {
			*seed = uint64(time.Now().UnixNano())
		}
	}
	plan.Seed, plan.Plant = *seed, *plant
	plan.Postgres = pgtest.Servers()[0].URL
	plan.Broker = "nats://127.0.0.1:14222"
	if at := os.Getenv("POSTHASTE_NATS_URL"); at != "" {
		plan.Broker = at
	}
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	if plan.Folder, err = os.MkdirTemp("", "proof-order-"); err != nil {
		return false, fmt.Errorf("a folder for the histories: %w", err)
	}
	fmt.Fprintf(os.Stderr, "proof-order: seed %d, histories in %s\n", plan.Seed, plan.Folder)
	report, err := torture.Run(ctx, plan, os.Stderr)
	if err != nil {
		return false, err
	}
	if report.OK() && !*keep {
		if err := os.RemoveAll(plan.Folder); err != nil {
			return false, fmt.Errorf("remove the histories: %w", err)
		}
	} else {
		fmt.Printf("the histories are in %s\n", plan.Folder)
	}
	return report.OK(), report.Print(os.Stdout)
}

func judgeAgain(folder string) (bool, error) {
	verdict, err := torture.Judge(folder, check.Floor{}, nil)
	if err != nil {
		return false, err
	}
	for _, problem := range verdict.Problems() {
		fmt.Println("BROKEN:", problem)
	}
	fmt.Println(verdict.Line())
	return verdict.Pass(), nil
}
