// Command proof-crash kills processes at every point before and after the steps that outlive them: relays,
// producers, operators and migrators, each with an outbox of its own in a real PostgreSQL and a stream of its
// own in a real NATS JetStream. Another process takes over, and the checker says what came of it. It ends with
// one line of name=value figures.
//
// It fails when the checker found something broken, and when a point was not reached. Then the histories of that
// point are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	points "github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/crash"
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
	plan.Postgres, plan.Broker = services.Postgres18(), services.NATS()
	return command.InFolder("proof-crash", fmt.Sprintf("%d points, histories", len(plan.Points)), *keep,
		func(folder string, to io.Writer) (_ bool, err error) {
			plan.Folder = folder
			if plan.Executable, err = os.Executable(); !points.Built {
				plan.Executable, err = crash.Build(ctx, folder)
			}
			if err != nil {
				return false, err
			}
			report, err := crash.Run(ctx, plan, os.Stderr)
			if err != nil {
				return false, err
			}
			return report.OK(), report.Print(to)
		})
}

// choose are the points that a flag names.
func choose(names string) (chosen []string) {
	for name := range strings.SplitSeq(names, ",") {
		if !strings.HasSuffix(name, ".") {
			chosen = append(chosen, name)
			continue
		}
		chosen = append(chosen, slices.DeleteFunc(crash.Points(), func(point string) bool {
			return !strings.HasPrefix(point, name)
		})...)
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
