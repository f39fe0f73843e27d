// Command proof-chaos proves that nothing is lost, invented, changed, reordered or blamed wrongly while everything
// fails that can: relays are killed, stand still and leave; PostgreSQL restarts and crashes, ends sessions, and has a
// clock that is an hour off; connections break in one direction, stall and are refused; the pooler and the broker are
// killed, slow, or take messages and do not say so. It has two halves, one over NATS JetStream and one over Google
// Pub/Sub, and ends with one line of name=value figures.
//
// It fails when the judge found something broken and when too little was tested. Then the histories and the logs are
// kept, and the command says where; -judge reads them again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/chaos"
	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/server"
	"github.com/posthaste-dev/posthaste/torture"
)

func main() { os.Exit(command.Main("proof-chaos", prove)) }

// brokers are the halves.
var brokers = []string{chaos.NATS, chaos.PubSub}

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The proof starts itself once for every life of a relay, and for the emulator.
	switch {
	case len(args) == 2 && args[0] == "relay":
		return true, torture.Live(ctx, args[1], torture.Relay)
	case len(args) == 4 && args[0] == server.Emulator:
		return true, server.RunEmulator(ctx, args[1], args[2], args[3])
	}
	flags := flag.NewFlagSet("proof-chaos", flag.ContinueOnError)
	short := flags.Bool("short", false, "24 seconds and 8,000 events instead of 120 and 54,000")
	duration := flags.Duration("duration", 0, "how long the producers write, both halves together; events and floors follow from it")
	seed := flags.Uint64("seed", 0, "what producers, chaos and operators draw from; the timing is the machine's. Defaults to 1 for the short form, and to another every time")
	plant := flags.String("plant", "", "a bug to put into the publishers, to see the proof fail: swap, drop, alter or twice")
	only := flags.String("only", "", "one half alone: nats or pubsub")
	noRace := flags.Bool("no-race", false, "build no relay with the race detector, which takes a while the first time")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	judge := flags.String("judge", "", "a folder of histories to judge once more, instead of a run")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *judge != "" {
		return judgeAgain(*judge)
	}
	plan := chaos.Long()
	if *short {
		plan = chaos.Short()
	}
	if *duration != 0 {
		plan.Duration = *duration
	}
	if *seed == 0 {
		if *seed = 1; !*short {
			*seed = uint64(time.Now().UnixNano())
		}
	}
	plan.Seed, plan.Plant = *seed, *plant
	if plan.Executable, err = os.Executable(); err != nil {
		return false, fmt.Errorf("which program this is: %w", err)
	}
	if plan.Folder, err = os.MkdirTemp("", "proof-chaos-"); err != nil {
		return false, fmt.Errorf("a folder for the histories: %w", err)
	}
	fmt.Fprintf(os.Stderr, "proof-chaos: seed %d, histories in %s\n", plan.Seed, plan.Folder)
	if !*noRace {
		plan.RaceExecutable = filepath.Join(plan.Folder, "proof-chaos-race")
		if err := build(ctx, plan.RaceExecutable); err != nil {
			return false, err
		}
	}
	halves := brokers
	if *only != "" {
		halves = []string{*only}
	}
	atATime := 1
	if *short { // they leave the machine idle most of the time
		atATime = len(halves)
	}
	return run(ctx, plan, halves, atATime, *keep)
}

// build makes this program with the race detector, for one of the relays.
func build(ctx context.Context, to string) error {
	command := exec.CommandContext(ctx, "go", "build", "-race", "-o", to, "github.com/posthaste-dev/posthaste/test/cmd/proof-chaos")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build a relay with the race detector, which needs Go and a C compiler (or give -no-race): %w\n%s", err, text)
	}
	return nil
}

// run plays the halves and adds up what they found.
func run(ctx context.Context, plan chaos.Plan, halves []string, atATime int, keep bool) (bool, error) {
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
		fmt.Printf("the histories are in %s\n", plan.Folder)
		return false, err
	}
	ok := !slices.ContainsFunc(reports, func(r *torture.Report) bool { return !r.OK() })
	if ok && !keep {
		if err := os.RemoveAll(plan.Folder); err != nil {
			return false, fmt.Errorf("remove the histories: %w", err)
		}
	} else {
		fmt.Printf("the histories are in %s\n", plan.Folder)
	}
	for _, report := range reports {
		report.PrintProblems(os.Stdout)
	}
	fmt.Println(torture.Line(chaos.Name, reports...))
	return ok, nil
}

// judgeAgain judges the histories of both halves.
func judgeAgain(folder string) (ok bool, err error) {
	ok = true
	for _, broker := range brokers {
		histories := filepath.Join(folder, broker, "histories")
		if _, err := os.Stat(histories); err != nil {
			continue // it did not come to that
		}
		verdict, err := torture.Judge(histories, check.Floor{}, nil)
		if err != nil {
			return false, err
		}
		for _, problem := range verdict.Problems() {
			fmt.Println("BROKEN:", problem)
		}
		fmt.Println(chaos.Name+"/"+broker, verdict.Line())
		ok = ok && verdict.Pass()
	}
	return ok, nil
}
