// Command proof-emit shows that the emit side keeps its promises when things go wrong. It runs the tests
// of test/suite/emit against both PostgreSQL servers, and those of other packages that show a fault between the
// application's transaction and PostgreSQL, lists the faults with their tests, and ends with one line of
// name=value figures.
//
// It fails when a test fails, when a promise is missed, and when too little was tested: a test that is
// gone, a server that is missing, a corpus that shrank. PAIRS and ROUNDS, or the flags, ask for more.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/gotest"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const (
	repository = "github.com/posthaste-dev/posthaste/"
	module     = repository + "test/suite/"
)

func main() { os.Exit(command.Main("proof-emit", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-emit", flag.ContinueOnError)
	pairs := flags.Int("pairs", 0, "pairs of transactions that race for a dedupe key, at least 200")
	rounds := flags.Int("rounds", 0, "rounds of calls with their keys in opposite orders, at least 200")
	race := flags.Bool("race", false, "with the race detector")
	results := flags.String("results", "", "check what `scripts/test --keep` has kept in this `file`, and run nothing")
	if err := flags.Parse(args); err != nil {
		return false, fmt.Errorf("flags: %w", err)
	}
	var environment, options []string
	if *pairs > 0 {
		environment = append(environment, "PAIRS="+strconv.Itoa(*pairs))
	}
	if *rounds > 0 {
		environment = append(environment, "ROUNDS="+strconv.Itoa(*rounds))
	}
	if *race {
		options = append(options, "-race")
	}
	found := gotest.New()
	take := func(path string, tests ...string) error {
		if *results != "" {
			return found.Load(*results, path, tests...)
		}
		chosen := "^(" + strings.Join(tests, "|") + ")$"
		if len(tests) == 0 {
			chosen = "."
		}
		return found.Run(ctx, environment, append(options, "-run", chosen, path)...)
	}
	if err := take(module + "emit"); err != nil {
		return false, err
	}
	for name, path := range otherPackages {
		if err := take(path, testsOf(name)...); err != nil {
			return false, err
		}
	}
	var servers []string
	for _, server := range pgtest.Servers() {
		servers = append(servers, server.Name)
	}
	report := check(found, servers)
	report.print(os.Stdout)
	return report.ok(), nil
}

// testsOf lists the tests of a package that show faults.
func testsOf(name string) []string {
	var tests []string
	for _, f := range faults {
		for _, test := range slices.Concat(f.tests, f.anyway) {
			if found, is := strings.CutPrefix(test, name+"."); is {
				tests = append(tests, found)
			}
		}
	}
	return tests
}
