// Command proof-marketplace proves the product as a whole: the marketplace of examples/marketplace with its API, two
// publishers and two workers, over NATS JetStream and over Pub/Sub, with its inbox in PostgreSQL and in Redis, while
// each kind of process is killed again and again under load. It ends with one line of name=value figures.
//
// It fails when something was broken and when too little was tested. Then histories and logs are kept, and the command
// says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
	"github.com/posthaste-dev/posthaste/test/proof/marketplace"
)

func main() { os.Exit(command.Main("proof-marketplace", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself as the emulator.
	if len(args) == 4 && args[0] == server.Emulator {
		return true, server.RunEmulator(ctx, args[1], args[2], args[3])
	}
	flags := flag.NewFlagSet("proof-marketplace", flag.ContinueOnError)
	short := flags.Bool("short", false, "ten seconds of load a round instead of thirty")
	programs := flags.String("programs", "bin/marketplace", "the folder of the marketplace's programs")
	only := flags.String("only", "", "one broker alone, nats or pubsub, or one round: nats/redis")
	keep := flags.Bool("keep", false, "keep histories and logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := marketplace.Long()
	if *short {
		plan = marketplace.Short()
	}
	plan.Programs, plan.Postgres = *programs, services.Postgres18()
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	return command.InFolder("proof-marketplace", "histories and logs", *keep,
		func(folder string, to io.Writer) (bool, error) {
			plan.Folder = folder
			return run(ctx, plan, *only, to)
		})
}

// run plays the rounds side by side: each has servers of its own, and most of its time it waits.
func run(ctx context.Context, plan marketplace.Plan, only string, to io.Writer) (bool, error) {
	var rounds []*marketplace.Round
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, broker := range []string{chaos.NATS, chaos.PubSub} {
		for _, inbox := range []string{marketplace.Postgres, marketplace.Redis} {
			if !strings.HasPrefix(broker+"/"+inbox, only) {
				continue
			}
			group.Go(func() error {
				round, err := marketplace.Play(ctx, plan, broker, inbox, os.Stderr)
				mu.Lock()
				defer mu.Unlock()
				rounds = append(rounds, round)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	return marketplace.Print(to, rounds...)
}
