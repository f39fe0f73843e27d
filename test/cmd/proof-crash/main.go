// Command proof-crash kills processes at every point before and after the steps that outlive them: relays,
// producers, operators and migrators, each with an outbox of its own in a real PostgreSQL and a stream of its
// own in a real NATS JetStream. Another process takes over, and the judge says what came of it. It ends with
// one line of name=value figures.
//
// It fails when the judge found something broken, and when a point was not reached. Then the histories of that
// point are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	points "github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/crash"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

func main() { os.Exit(command.Main("proof-crash", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	// The processes that die are this program, built with the tag crash.
	if len(args) == 2 && args[0] == "live" {
		return true, crash.Live(ctx, args[1])
	}
	flags := flag.NewFlagSet("proof-crash", flag.ContinueOnError)
	short := flags.Bool("short", false, "all points with 90 events each instead of 250")
	list := flags.Bool("list", false, "list the points, and do nothing")
	only := flags.String("point", "", "the points to try, separated by commas; all that begin so, if it ends with a dot")
	keep := flags.Bool("keep", false, "keep the histories also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *list {
		return true, printList()
	}
	plan := crash.Long()
	if *short {
		plan = crash.Short()
	}
	if *only != "" {
		plan.Points, plan.Least = choose(*only), 0
	}
	plan.Postgres = pgtest.Servers()[0].URL
	plan.Broker = "nats://127.0.0.1:14222"
	if at := os.Getenv("POSTHASTE_NATS_URL"); at != "" {
		plan.Broker = at
	}
	return try(ctx, plan, *keep)
}

// choose are the points that a flag names.
func choose(names string) (chosen []string) {
	for name := range strings.SplitSeq(names, ",") {
		if !strings.HasSuffix(name, ".") {
			chosen = append(chosen, name)
			continue
		}
		chosen = append(chosen, slices.DeleteFunc(crash.Points(), func(point string) bool { return !strings.HasPrefix(point, name) })...)
	}
	return chosen
}

func printList() error {
	for _, d := range points.List() {
		if _, err := fmt.Printf("%-22s %s\n", d.Name, d.Where); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

func try(ctx context.Context, plan crash.Plan, keep bool) (ok bool, err error) {
	if plan.Folder, err = os.MkdirTemp("", "proof-crash-"); err != nil {
		return false, fmt.Errorf("a folder for the histories: %w", err)
	}
	fmt.Fprintf(os.Stderr, "proof-crash: %d points, histories in %s\n", len(plan.Points), plan.Folder)
	if points.Built {
		plan.Executable, err = os.Executable()
	} else {
		plan.Executable, err = crash.Build(ctx, plan.Folder)
	}
	if err != nil {
		return false, err
	}
	report, err := crash.Run(ctx, plan, os.Stderr)
	if err != nil {
		return false, err
	}
	if report.OK() && !keep {
		if err := os.RemoveAll(plan.Folder); err != nil {
			return false, fmt.Errorf("remove the histories: %w", err)
		}
	}
	return report.OK(), report.Print(os.Stdout)
}
