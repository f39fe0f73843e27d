// Command proof-upgrade proves that the outbox can be upgraded while it is in use, and that an upgrade can be taken
// back. It builds outbox-publisher, outboxctl and an application from an old commit, and runs them beside those of the
// working tree: the old relay before, during and after the migration of its schema; both side by side, with kills; the
// new one alone; and the old one again. Producers and consumers of both sides go on all the while. A new relay before
// a schema that is too old must refuse it with a clear word. It ends with one line of name=value figures.
//
// The old commit is the last tag of a version, or, as long as there is none, the commit before the newest migration.
// It fails when something was broken and when too little was tested. Then histories and logs are kept, and the command
// says where.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/upgrade"
)

func main() { os.Exit(command.Main("proof-upgrade", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-upgrade", flag.ContinueOnError)
	short := flags.Bool("short", false, "200 events of each side in each leg instead of 3,000")
	name := flags.String("old", "", "the old commit, if not the last release or the one before the newest migration")
	programs := flags.String("programs", "bin", "the folder of outbox-publisher and outboxctl of the working tree")
	client := flags.String("client", "bin/proofs/upgrade-client", "test/cmd/upgrade-client of the working tree")
	fault := flags.String("fault", "", "SQL to run after the migration, with {schema} in it, to see the proof fail")
	keep := flags.Bool("keep", false, "keep histories and logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	plan := upgrade.Long()
	if *short {
		plan = upgrade.Short()
	}
	const root = "."
	if plan.Old, err = upgrade.FindOld(ctx, root, *name); err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stderr, "proof-upgrade: the old commit is %s: %s\n", plan.Old.Short(), plan.Old.Why)
	plan.Postgres, plan.NATS, plan.Fault = services.Postgres18(), services.NATS(), *fault
	plan.NewPrograms = upgrade.In(*programs)
	plan.NewPrograms.Client = *client
	return command.InFolder("proof-upgrade", "histories, logs and the old tree", *keep,
		func(folder string, to io.Writer) (_ bool, err error) {
			plan.Folder = folder
			if err := prepare(ctx, root, &plan); err != nil {
				return false, err
			}
			report, err := upgrade.Run(ctx, plan, os.Stderr)
			if err != nil {
				return false, err
			}
			return report.Print(to)
		})
}

// prepare builds the old programs and compares the migrations.
func prepare(ctx context.Context, root string, plan *upgrade.Plan) (err error) {
	tree := filepath.Join(plan.Folder, "tree")
	if err := upgrade.Checkout(ctx, root, plan.Old, tree); err != nil {
		return err
	}
	if plan.Outbox, err = upgrade.Compare(tree, root, "outbox"); err != nil {
		return err
	}
	if plan.Inbox, err = upgrade.Compare(tree, root, "inbox"); err != nil {
		return err
	}
	for set, m := range map[string]upgrade.Migrations{"outbox": plan.Outbox, "inbox": plan.Inbox} {
		if m.Kept() {
			continue
		}
		if plan.Old.Released {
			return fmt.Errorf("a released migration never changes, and since %s these of the %s did: changed %v, gone %v",
				plan.Old.Why, set, m.Changed, m.Gone)
		}
		fmt.Fprintf(os.Stderr, "proof-upgrade: since then, before the first release, migrations of the %s were changed: %v, "+
			"and renamed: %v; so the old schema is made of the first %d of today\n", set, m.Changed, m.Gone, m.Shared)
	}
	plan.OldPrograms, err = upgrade.Build(ctx, tree, filepath.Join(plan.Folder, "programs"))
	return err
}
