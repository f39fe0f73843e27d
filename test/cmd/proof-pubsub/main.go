// Command proof-pubsub proves publisher and consumer against Google Pub/Sub itself, in a project of yours:
//
//	make proof-pubsub PROJECT=my-project ENDPOINT=europe-west1-pubsub.googleapis.com:443
//
// It creates topics and subscriptions with names of its own, has the publisher go through the suite of all publishers,
// consumes through failures, breaks connections for ten minutes while events flow, and removes what it has created. It
// needs roles/pubsub.editor and credentials where Google's client looks for them, and costs some cents. -emulator
// leaves out TLS and credentials. It ends with one line of name=value figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/proof/pubsub"
)

func main() { os.Exit(command.Main("proof-pubsub", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-pubsub", flag.ContinueOnError)
	project := flags.String("project", "", "the project's id; there is no default")
	endpoint := flags.String("endpoint", "us-central1-pubsub.googleapis.com:443", "of a region, or of an emulator")
	emulator := flags.String("emulator", "", "the endpoint is an emulator, without TLS and credentials: `ours`, or "+
		"google, whose consumers keep their connections, since it does not survive that they break")
	duration := flags.Duration("duration", 10*time.Minute, "how long connections break")
	seed := flags.Uint64("seed", 0, "of the schedule of faults")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if !slices.Contains([]string{"", "ours", "google"}, *emulator) {
		return false, fmt.Errorf("-emulator is %q: use ours or google", *emulator)
	}
	if *project == "" {
		return false, errors.New("no project: it creates and removes topics, so say where: make proof-pubsub " +
			"PROJECT=my-project")
	}
	plan := pubsub.Plan{
		Project: *project, Endpoint: *endpoint, Emulator: *emulator != "", SpareConsumer: *emulator == "google",
		Chaos: *duration, Keys: 20, Pause: 16 * time.Second, Seed: command.Seed(*seed, false), Progress: os.Stderr,
	}
	fmt.Fprintf(os.Stderr, "proof-pubsub: seed %d\n", plan.Seed)
	report, err := pubsub.Prove(ctx, plan)
	if report != nil {
		report.Print(os.Stdout)
	}
	return err == nil && report.OK(), err
}
