// Command house measures the repository and fails where it is not in order. See `make house` and -help.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/shape"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

const usage = `house prints modules, packages, lines, exported names, the longest file and function, and where a rule
does not hold. It ends with one line of name=value figures. It exits with 0 when every rule holds, 1 when one does not,
and 2 when it could not measure.

  go run ./test/cmd/house                           from the root of the repository
  go run ./test/cmd/house -findings all             every finding, not only the first ones
  go run ./test/cmd/house -only old_words           one check; more with commas between them
  go run ./test/cmd/house -only long_lines -folders how many findings each folder has
  go run ./test/cmd/house -root ../another-tree     another tree, such as one before a change

`

func main() { os.Exit(command.Main("house", run)) }

func run(_ context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	root := flags.String("root", ".", "the root of the repository")
	findings := flags.String("findings", "20", "how many findings of each check to print, or all")
	only := flags.String("only", "", "the checks to make, with commas between them; empty for all")
	folders := flags.Bool("folders", false, "print the findings of each folder as a number")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	most := math.MaxInt
	if *findings != "all" {
		if most, err = strconv.Atoi(*findings); err != nil {
			return false, fmt.Errorf("-findings %s: want a number or all", *findings)
		}
	}
	repository, err := shape.Read(*root)
	if err != nil {
		return false, err
	}
	var names []string
	for _, m := range mutants.List() {
		names = append(names, m.Name)
	}
	report, err := repository.Measure(names...)
	if err != nil {
		return false, err
	}
	if err := report.Only(*only); err != nil {
		return false, err
	}
	if *folders {
		report.PrintFolders(os.Stdout)
	} else {
		report.Print(os.Stdout, most)
	}
	fmt.Println(report.Line())
	return report.OK(), nil
}
