// Command proof-mutants runs the product with known mistakes, one at a time, and demands that the cheapest test or
// proof for each of them fails, and passes without it. It ends with one line of name=value figures.
//
// It fails when a mutant was not caught, when a proof does not pass by itself, and when there were too few.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

func main() { os.Exit(command.Main("proof-mutants", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-mutants", flag.ContinueOnError)
	one := flags.String("mutant", "", "run this mutant only; -list lists them")
	list := flags.Bool("list", false, "print the mutants, what is wrong with each and what catches it, and run none")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if *list {
		for _, m := range mutants.List() {
			fmt.Printf("%-26s %-4s %s\n%32s%s\n", m.Name, m.Of, m.Mistake, "", m.Proof)
		}
		return true, nil
	}
	report, err := mutants.Run(ctx, *one, os.Stderr)
	if err != nil {
		return false, err
	}
	problems := report.Problems()
	for _, problem := range problems {
		fmt.Println(problem)
	}
	fmt.Println(report.Line())
	return len(problems) == 0, nil
}
