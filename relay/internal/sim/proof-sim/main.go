// Command proof-sim runs the relay's core in thousands of simulations in which everything goes wrong
// that can, and tells a few long stories in simulated time. It ends with one line of name=value figures,
// and fails when a promise was broken or too little was tested.
//
// A seed that fails is printed with the command that runs it again. The full form also runs 500 seeds that change with
// the day, and says which; the short form has the same seeds every time.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/sim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := prove(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "proof-sim:", err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}

func prove(ctx context.Context, args []string, out, progress io.Writer) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-sim", flag.ContinueOnError)
	seeds := flags.Int("seeds", 0, "seeds to run; 5000, or 300 with -short")
	steps := flags.Int("steps", 400, "steps of each seed, at least, before its faults end")
	seed := flags.Uint64("seed", 0, "run this seed only")
	scenario := flags.String("scenario", "", "tell this story only")
	trace := flags.Bool("v", false, "with -seed: print everything that happens")
	short := flags.Bool("short", false, "fewer seeds and smaller stories")
	from := flags.Uint64("from", 1, "the first seed")
	day := flags.String("day", "", "run the seeds of this day as well, as 2026-11-16, or none; today, or none with -short")
	stories := flags.Bool("stories", true, "tell the stories as well")
	if err := flags.Parse(args); err != nil {
		return false, fmt.Errorf("flags: %w", err)
	}
	if *seeds == 0 {
		*seeds = 5000
		if *short {
			*seeds = 300
		}
	}
	whose, err := dayOf(*day, *short)
	if err != nil {
		return false, err
	}
	switch {
	case *seed != 0:
		return replay(*seed, *steps, *trace, out), nil //nolint:contextcheck // nothing in a simulation waits
	case *scenario != "":
		return runScenario(*scenario, *short, out)
	}
	if !whose.IsZero() {
		list := sim.SeedsOf(whose)
		fmt.Fprintf(out, "the seeds of the day are %d to %d; they run again with -day %s\n", list[0], list[len(list)-1],
			whose.Format(time.DateOnly))
	}
	report := sim.Prove(ctx, sim.Options{
		From: *from, Seeds: *seeds, Day: whose, Steps: *steps, Short: *short, Stories: *stories, Progress: progress,
	})
	missed := report.Missed()
	for i, sentence := range missed {
		if i == 30 {
			fmt.Fprintf(out, "and %d more\n", len(missed)-i)
			break
		}
		fmt.Fprintln(out, sentence)
	}
	fmt.Fprintln(out, report.Line())
	return len(missed) == 0, nil
}

// dayOf is the day whose seeds are run, zero for none.
func dayOf(name string, short bool) (time.Time, error) {
	switch {
	case name == "none", name == "" && short:
		return time.Time{}, nil
	case name == "":
		return time.Now().UTC().Truncate(24 * time.Hour), nil
	}
	day, err := time.Parse(time.DateOnly, name)
	if err != nil {
		return time.Time{}, fmt.Errorf("-day: %w", err)
	}
	return day, nil
}

// replay runs one seed again.
func replay(seed uint64, steps int, trace bool, out io.Writer) bool {
	var lines io.Writer
	buffered := bufio.NewWriter(out)
	if trace {
		lines = buffered
	}
	result := sim.Run(seed, steps, sim.Mutant{}, lines)
	if !result.Pass() {
		fmt.Fprintln(buffered, result.Explain(steps))
	}
	if result.Verdict != nil {
		fmt.Fprintln(buffered, result.Verdict.Line())
	}
	fmt.Fprintf(buffered, "proof-sim seed=%d steps=%d ok=%t\n", seed, result.Steps, result.Pass())
	return buffered.Flush() == nil && result.Pass()
}

// runScenario runs one scenario.
func runScenario(name string, short bool, out io.Writer) (ok bool, err error) {
	for _, s := range sim.Scenarios() {
		if s.Name != name {
			continue
		}
		ok = true
		for _, f := range s.Run(short) {
			fmt.Fprintf(out, "%s=%d ok=%t\n", f.Name, f.Value, f.OK)
			ok = ok && f.OK
		}
		return ok, nil
	}
	return false, fmt.Errorf("there is no scenario %q", name)
}
