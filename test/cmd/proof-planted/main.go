// Command proof-planted makes known mistakes in the real code, one at a time, and demands that the cheapest
// test or proof for each of them fails, and passes without it. It ends with one line of name=value figures.
//
// It fails when a mistake was not caught, when a proof does not pass by itself, and when there were too few.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/posthaste-dev/posthaste/test/command"
	"github.com/posthaste-dev/posthaste/test/planted"
)

func main() { os.Exit(command.Main("proof-planted", prove)) }

func prove(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("proof-planted", flag.ContinueOnError)
	one := flags.String("bug", "", "make this mistake only")
	list := flags.Bool("list", false, "print the mistakes, what each is and what catches it, and make none")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	all := planted.Mistakes()
	if *list {
		for _, m := range all {
			fmt.Printf("%-26s %-4s %s\n%32s%s\n", m.Name, m.Of, m.What, "", m.Proof())
		}
		return true, nil
	}
	if *one != "" {
		at := slices.IndexFunc(all, func(m planted.Mistake) bool { return m.Name == *one })
		if at < 0 {
			return false, fmt.Errorf("no mistake is called %q; -list lists them", *one)
		}
		all = all[at : at+1]
	}
	report, err := planted.Run(ctx, all, os.Stderr)
	if err != nil {
		return false, err
	}
	report.One = *one != ""
	problems := report.Problems()
	for _, problem := range problems {
		fmt.Println(problem)
	}
	fmt.Println(report.Line())
	return len(problems) == 0, nil
}
