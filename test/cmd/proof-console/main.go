// Command proof-console proves the console as people use it: a real Chromium opens every page of it against a real
// PostgreSQL, in both themes and at the width of a phone; in an outbox in which every field has a text that wants to be
// run, nothing runs and every text is read; pages are read again while somebody looks, and only then; and somebody
// finds what is wrong with a shop and repairs it, with the console alone.
//
// It ends with one line of name=value figures, and fails when a must is missed or too little was looked at. With -short
// the time until something is seen is printed and does not decide. With -into every page gets its picture.
package main

import (
	"context"
	"flag"
	"io"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/console"
)

func main() { os.Exit(command.Main("proof-console", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-console", flag.ContinueOnError)
	short := flags.Bool("short", false, "fewer orders and looks, and times do not decide")
	url := flags.String("url", services.Postgres18(), "server to prove it on, as a role that may create databases")
	into := flags.String("into", "", "a folder that gets a picture of every page")
	part := flags.String("part", "", "a piece of the name of the only part to run, which is no proof")
	keep := flags.Bool("keep", false, "keep what is written down also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := console.Long()
	if *short {
		plan = console.Short()
	}
	plan.URL, plan.Pictures, plan.Part = *url, *into, *part
	if *into != "" {
		if err := os.MkdirAll(*into, 0o755); err != nil {
			return false, err
		}
	}
	return command.InFolder("proof-console", "what went wrong", *keep, func(folder string, to io.Writer) (bool, error) {
		plan.Folder = folder
		report, err := console.Run(ctx, plan, os.Stderr)
		if err != nil {
			return false, err
		}
		return report.OK(), report.Print(to)
	})
}
