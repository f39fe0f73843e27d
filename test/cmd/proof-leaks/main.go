// Command proof-leaks proves that nothing which people and machines can read about a publisher shows a secret or
// personal data. It plants canaries in every setting that is secret and in every part of an event, lets chaos loose on
// publishers that log everything there is, and then searches logs, answers of the probes, metrics, traces, the outbox's
// columns and what the commands print, in every spelling that software gives to a text. It ends with one line of
// name=value figures.
//
// It fails when it found one and when it searched too little. Then the logs are kept, and the command says where.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/proof/leaks"
)

func main() { os.Exit(command.Main("proof-leaks", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-leaks", flag.ContinueOnError)
	short := flags.Bool("short", false, "every blow falls once instead of four times")
	binary := flags.String("binary", "bin/outbox-publisher", "the publisher")
	outboxctl := flags.String("outboxctl", "bin/outboxctl", "the operator's tool")
	keep := flags.Bool("keep", false, "keep the logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := leaks.Long()
	if *short {
		plan = leaks.Short()
	}
	plan.Binary, plan.Outboxctl = *binary, *outboxctl
	return command.InFolder("proof-leaks", "logs", *keep, func(folder string, to io.Writer) (bool, error) {
		plan.Folder = folder
		report, err := leaks.Run(ctx, plan, os.Stderr)
		if err != nil {
			return false, err
		}
		return report.Print(to)
	})
}
