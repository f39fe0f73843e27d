// Command proof-retention proves that retention deletes what it should and nothing else, and that live traffic does
// not feel it: 1,000,000 published rows go while 1,000 events per second are emitted and relayed, in five pairs of
// minutes with and without retention, against a real PostgreSQL.
//
// It prints a table and then one line of name=value figures, and fails when a must is missed. What was deleted, how
// many rows at once and who had to wait for it always decide. With -short the stretches are seconds: then times are
// printed and do not decide.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/retention"
)

func main() { os.Exit(command.Main("proof-retention", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-retention", flag.ContinueOnError)
	url := flags.String("url", services.Postgres18(), "server to prove it on, as a role that may create databases")
	short := flags.Bool("short", false, "45,000 rows and five pairs of seconds instead of 1,000,000 and five of minutes")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := retention.Long()
	if *short {
		plan = retention.Short()
	}
	plan.URL = *url
	report, err := retention.Run(ctx, plan, retention.Retention, os.Stderr)
	if err != nil {
		return false, err
	}
	return len(report.Problems()) == 0, report.Print(os.Stdout)
}
