// Command proof-chaos proves that nothing is lost, invented, changed, reordered or blamed wrongly while everything
// fails that can: relays are killed, stand still and leave; PostgreSQL restarts and crashes, ends sessions, and has a
// clock that is an hour off; connections break in one direction, stall and are refused; the pooler and the broker are
// killed, slow, or take messages and do not say so. It has two halves, one over NATS JetStream and one over Google
// Pub/Sub, and ends with one line of name=value figures.
//
// It fails when the checker found something broken and when too little was tested. Then the histories and the logs are
// kept, and the command says where; -check reads them again.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
	"github.com/posthaste-dev/posthaste/test/proof/order"
)

func main() { os.Exit(command.Main("proof-chaos", prove)) }

// brokers are the halves.
var brokers = []string{chaos.NATS, chaos.PubSub}

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay, and for the emulator.
	switch {
	case len(args) == 2 && args[0] == "relay":
		return true, torture.RunRelay(ctx, args[1], torture.Relay)
	case len(args) == 4 && args[0] == server.Emulator:
		return true, server.RunEmulator(ctx, args[1], args[2], args[3])
	}
	flags := flag.NewFlagSet("proof-chaos", flag.ContinueOnError)
	short := flags.Bool("short", false, "24 seconds and 8,000 events instead of 120 and 54,000")
	duration := flags.Duration("duration", 0,
		"how long the producers write, both halves together; events and floors follow from it")
	seed := flags.Uint64("seed", 0, "what producers, chaos and operators draw from; the timing is the machine's. "+
		"Defaults to 1 for the short form, and to another every time")
	bug := flags.String("mutant", "", "a mistake of the publishers, to see the proof fail: "+
		"swap, drop, alter, twice or invent")
	only := flags.String("only", "", "one half alone: nats or pubsub")
	noRace := flags.Bool("no-race", false, "build no relay with the race detector, which takes a while the first time")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	earlier := flags.String("check", "", "a folder of histories to check once more, instead of a run")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *earlier != "" {
		return checkAgain(*earlier)
	}
	plan := chaos.Long()
	if *short {
		plan = chaos.Short()
	}
	if *duration != 0 {
		plan.Duration = *duration
	}
	plan.Seed, plan.Mutant = command.Seed(*seed, *short), *bug
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	halves := brokers
	if *only != "" {
		halves = []string{*only}
	}
	atATime := 1
	if *short { // they leave the machine idle most of the time
		atATime = len(halves)
	}
	what := fmt.Sprintf("seed %d, histories", plan.Seed)
	return command.InFolder(chaos.Name, what, *keep, func(folder string, to io.Writer) (bool, error) {
		plan.Folder = folder
		if !*noRace {
			plan.RaceExecutable = filepath.Join(folder, "proof-chaos-race")
			if err := build(ctx, plan.RaceExecutable); err != nil {
				return false, err
			}
		}
		return run(ctx, plan, halves, atATime, to)
	})
}

// build makes this program with the race detector, for one of the relays.
func build(ctx context.Context, to string) error {
	command := exec.CommandContext(ctx, "go", "build", "-race", "-o", to,
		"github.com/posthaste-dev/posthaste/test/cmd/proof-chaos")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build a relay with the race detector, which needs Go and a C compiler (or give -no-race): %w\n%s",
			err, text)
	}
	return nil
}

// run plays the halves and adds up what they found.
func run(ctx context.Context, plan chaos.Plan, halves []string, atATime int, to io.Writer) (bool, error) {
	reports := make([]*torture.Report, len(halves))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i, broker := range halves {
		group.Go(func() (err error) {
			if reports[i], err = chaos.Half(ctx, plan, broker, os.Stderr); err == nil {
				fmt.Fprintln(os.Stderr, torture.Line(reports[i].Name, reports[i]))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	ok := !slices.ContainsFunc(reports, func(r *torture.Report) bool { return !r.OK() })
	for _, report := range reports {
		report.PrintProblems(to)
	}
	_, err := fmt.Fprintln(to, torture.Line(chaos.Name, reports...))
	return ok, err
}

// checkAgain checks the histories of both halves.
func checkAgain(folder string) (ok bool, err error) {
	ok = true
	for _, broker := range brokers {
		histories := filepath.Join(folder, broker, "histories")
		if _, err := os.Stat(histories); err != nil {
			continue // it did not come to that
		}
		passed, err := order.CheckAgain(os.Stdout, chaos.Name+"/"+broker, histories)
		if err != nil {
			return false, err
		}
		ok = ok && passed
	}
	return ok, nil
}
