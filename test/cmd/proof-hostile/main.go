// Command proof-hostile proves that no input, however hostile, crashes the relay, stops it, holds up others, gets
// changed, or makes it say what must not be said: each of several hundred goes through PostgreSQL and a relay to
// NATS JetStream and to Pub/Sub, and is read back. It ends with one line of name=value figures.
//
// It fails when a fate is missing or wrong, when a good event behind a bad one was late, and when too little was tried.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/hostile"
)

func main() { os.Exit(command.Main("proof-hostile", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-hostile", flag.ContinueOnError)
	server := flags.Int("postgres", 0, "which PostgreSQL: 0 is the newest, 1 the oldest that is supported")
	only := flags.String("only", "", "only inputs whose name contains this; then too little is never tried")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	servers := pgtest.Servers()
	if *server < 0 || *server >= len(servers) {
		return false, fmt.Errorf("there are %d servers", len(servers))
	}
	plan := hostile.Plan{
		Servers: hostile.Servers{
			PostgresURL: servers[*server].URL,
			NATSURL:     services.NATS(),
			PubSubAddr:  services.PubSub(),
		},
	}
	if *only != "" {
		plan.Only = func(name string) bool { return strings.Contains(name, *only) }
	}
	report, err := hostile.Run(ctx, plan, os.Stderr)
	if err != nil {
		return false, err
	}
	return report.OK(), report.Print(os.Stdout)
}
