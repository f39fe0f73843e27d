// Command conformance compares docs/internals/conformance.md and docs/internals/proofs.md with the results of a
// test run:
//
//	go run ./test/cmd/conformance results.jsonl...
//
// The results are what `go test -json` wrote. The last line has the figures; the exit status is 1 when a
// requirement has no row, when one of the pages names a test that did not pass, or when the first names a file
// that is not there.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/conformance"
)

func main() {
	page := flag.String("page", "docs/internals/conformance.md", "the page to check")
	proofs := flag.String("proofs", "docs/internals/proofs.md", "the page of the proofs, whose tests must have passed too")
	flag.Parse()
	if err := run(*page, *proofs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(pageFile, proofsFile string, files []string) error {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		return fmt.Errorf("%w: run it from the root of the repository", err)
	}
	proofs, err := os.ReadFile(proofsFile)
	if err != nil {
		return err
	}
	results := conformance.Results{}
	for _, name := range files {
		if err := add(results, name); err != nil {
			return err
		}
	}
	rows, problems := conformance.Check(string(page), results)
	proofsTests, missing := conformance.CheckNamed(string(proofs), results)
	for _, problem := range missing {
		problems = append(problems, proofsFile+": "+problem)
	}
	for _, problem := range conformance.CheckFiles(string(page), func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}) {
		problems = append(problems, pageFile+": "+problem)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	shown, tests := 0, map[string]bool{}
	for _, row := range rows {
		if len(row.Tests) > 0 {
			shown++
		}
		for _, test := range row.Tests {
			tests[test] = true
		}
	}
	passed, failed, skipped := tally(results)
	fmt.Printf("conformance ids=%d shown=%d later=%d named_tests=%d proofs_tests=%d run=%d passed=%d failed=%d skipped=%d"+
		" problems=%d\n",
		len(rows), shown, len(rows)-shown, len(tests), len(proofsTests), len(results), passed, failed, skipped, len(problems))
	if len(problems) > 0 {
		return fmt.Errorf("%d problems", len(problems))
	}
	return nil
}

func add(results conformance.Results, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return results.Add(file, "github.com/posthaste-dev/posthaste")
}

func tally(results conformance.Results) (passed, failed, skipped int) {
	for name, outcome := range results {
		switch outcome {
		case "pass":
			passed++
		case "fail":
			failed++
		case "skip":
			skipped++
			fmt.Println("skipped:", name)
		}
	}
	return passed, failed, skipped
}
