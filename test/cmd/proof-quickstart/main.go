// Command proof-quickstart proves the first minute: README's quick start is done word by word in an empty folder
// outside of the repository, with the command installed from a module proxy, and commands and seconds are counted
// until an event is on screen; then the same with the module that `outboxctl init` writes. Then a table, a stream, a
// grant, a password and the whole database are left out: each error must say what to do, and that must help. Meanwhile
// the blocks of README, of the tutorial and of the exercises of docs/outbox.md are run, compiled and compared with what
// they print. It ends with one line of name=value figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/proof/quickstart"
)

func main() { os.Exit(command.Main("proof-quickstart", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-quickstart", flag.ContinueOnError)
	short := flags.Bool("short", false, "do not hold the module to its seconds: most of them are the compiler's")
	proxy := flags.String("proxy", "", "the folder of a module proxy that has the modules (default: this tree)")
	version := flags.String("version", "", "the version that must come from it (default: whatever is the latest)")
	keep := flags.Bool("keep", false, "keep folders and logs also when all is well")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return false, fmt.Errorf("where the repository is: %w", err)
	}
	return command.InFolder("proof-quickstart", "folders and logs", *keep,
		func(folder string, to io.Writer) (bool, error) {
			log, err := os.Create(filepath.Join(folder, "log"))
			if err != nil {
				return false, fmt.Errorf("the log: %w", err)
			}
			defer func() { _ = log.Close() }()
			report, err := quickstart.Prove(ctx, quickstart.Plan{
				Root: root, Folder: folder, Short: *short, Log: log, Proxy: *proxy, Version: *version,
			})
			if err != nil {
				return false, err
			}
			return report.Print(to)
		})
}
