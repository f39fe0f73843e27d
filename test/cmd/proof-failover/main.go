// Command proof-failover proves what happens to events when PostgreSQL crashes, fails over, hangs on a standby or is
// restored: it starts clusters of its own and does all of that to them under load. It ends with one line of
// name=value figures.
//
// It fails when something was lost, invented or left behind that must not be, and when too little was tested. Then
// the histories are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/failover"
)

func main() { os.Exit(command.Main("proof-failover", prove)) }

// limit is far more than the proof takes.
const limit = 10 * time.Minute

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay.
	if len(args) == 2 && args[0] == "relay" {
		return true, torture.RunRelay(ctx, args[1], torture.Relay)
	}
	flags := flag.NewFlagSet("proof-failover", flag.ContinueOnError)
	short := flags.Bool("short", false, "fewer events and crashes")
	seed := flags.Uint64("seed", 0, "what producers and storms draw from; the timing is the machine's. Defaults to 1 "+
		"for the short form, and to another every time")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	proof := &failover.Proof{Short: *short, Seed: command.Seed(*seed, *short), Say: os.Stderr, Broker: services.NATS()}
	if proof.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	what := fmt.Sprintf("seed %d, histories", proof.Seed)
	return command.InFolder("proof-failover", what, *keep, func(folder string, to io.Writer) (bool, error) {
		proof.Folder = folder
		result, err := proof.Run(ctx)
		if err != nil {
			return false, err
		}
		return len(result.Problems()) == 0, result.Print(to)
	})
}
