// Command proof-publisher proves outbox-publisher as people deploy it. The first steps of docs/outbox.md and of the
// marketplace's page are done word by word on servers that have nothing yet, and their events are seen at the broker.
// Then the built binary, with NATS JetStream and with Google Pub/Sub, lives through restarts and crashes of its
// database and its broker under load, and through an outage of its broker during which events pile up: nothing is lost,
// dead or charged, the process is never restarted, and its probes say what is true. It ends with one line of name=value
// figures.
//
// It fails when something was broken and when too little was tested. Then histories and logs are kept, and the command
// says where.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

func main() { os.Exit(command.Main("proof-publisher", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself as the emulator.
	if len(args) == 4 && args[0] == server.Emulator {
		return true, server.RunEmulator(ctx, args[1], args[2], args[3])
	}
	flags := flag.NewFlagSet("proof-publisher", flag.ContinueOnError)
	short := flags.Bool("short", false, "an outage of 8 s and 1,000 events instead of 60 s and 20,000")
	binary := flags.String("binary", "bin/outbox-publisher", "the program")
	only := flags.String("only", "", "one half alone: nats or pubsub")
	keep := flags.Bool("keep", false, "keep histories and logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := publisher.Long()
	if *short {
		plan = publisher.Short()
	}
	plan.Binary = *binary
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	brokers := []string{chaos.NATS, chaos.PubSub}
	if *only != "" {
		brokers = []string{*only}
	}
	return command.InFolder("proof-publisher", "histories and logs", *keep,
		func(folder string, to io.Writer) (bool, error) {
			plan.Folder = folder
			return run(ctx, plan, brokers, to)
		})
}

func run(ctx context.Context, plan publisher.Plan, brokers []string, to io.Writer) (bool, error) {
	walks, err := firstSteps(ctx, plan.Folder)
	if err != nil {
		return false, err
	}
	// Most of their time the halves wait.
	halves := make([]*publisher.Half, len(brokers))
	group, ctx := errgroup.WithContext(ctx)
	for i, broker := range brokers {
		group.Go(func() (err error) {
			halves[i], err = publisher.Survive(ctx, plan, broker, os.Stderr)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	return publisher.Print(to, walks, halves...)
}

// firstSteps does those of both pages, on a set of servers of its own.
func firstSteps(ctx context.Context, logs string) (_ []*publisher.Walked, err error) {
	fresh, err := publisher.NewFresh(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	var walks []*publisher.Walked
	for _, walk := range []publisher.Walk{publisher.Stock(logs), publisher.Marketplace(logs)} {
		walked, err := fresh.Walk(ctx, walk, os.Stderr)
		if err != nil {
			return nil, fmt.Errorf("the first steps of %s: %w", walk.Page, err)
		}
		walks = append(walks, walked)
	}
	return walks, nil
}
