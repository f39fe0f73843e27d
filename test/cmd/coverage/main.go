// Command coverage counts the statements of product packages that tests have run, and compares them with an earlier
// count. scripts/coverage runs the tests for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/kit/command"
	"github.com/posthaste-dev/posthaste/test/kit/coverage"
	"github.com/posthaste-dev/posthaste/test/kit/shape"
)

const (
	ours  = "github.com/posthaste-dev/posthaste"
	usage = `coverage reads a profile of "go test -coverprofile" and prints the product packages with their statements.
It ends with one line of name=value figures. With -before it exits with 1 where a package is lower by more than 0.3
points.

  coverage -profile cover.out -keep after.txt
  coverage -read after.txt -before before.txt -together relay,relay/operator,relay/retention,relay/survey

`
)

func main() { os.Exit(command.Main("coverage", run)) }

func run(_ context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	profile := flags.String("profile", "", "count what this profile has")
	read := flags.String("read", "", "or read a count that was kept")
	keep := flags.String("keep", "", "keep the count in this file")
	before := flags.String("before", "", "compare with the count in this file")
	var groups [][]string
	flags.Func("together", "packages to compare as one, with commas between them; may be given again",
		func(list string) error {
			groups = append(groups, strings.Split(list, ","))
			return nil
		})
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	table, err := count(*profile, *read)
	if err != nil {
		return false, err
	}
	if err := table.Write(os.Stdout); err != nil {
		return false, err
	}
	if *keep != "" {
		if err := keepTable(table, *keep); err != nil {
			return false, err
		}
	}
	lower := 0
	if *before != "" {
		earlier, err := readTable(*before)
		if err != nil {
			return false, err
		}
		lower = compare(earlier, table, groups)
	}
	total := table.Total()
	line := figures.New("coverage")
	line.Addf("packages", "%d", len(table))
	line.Addf("statements", "%d", total.Statements)
	line.Addf("covered", "%d", total.Covered)
	line.Addf("percent", "%.2f", total.Percent())
	line.Addf("lower", "%d", lower)
	line.Addf("ok", "%t", lower == 0)
	fmt.Println(line)
	return lower == 0, nil
}

func count(profile, read string) (coverage.Table, error) {
	switch {
	case (profile == "") == (read == ""):
		return nil, errors.New("want -profile or -read, see -help")
	case read != "":
		return readTable(read)
	}
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	table, err := coverage.Profile(file, ours, shape.IsProduct)
	if err == nil && len(table) == 0 {
		err = fmt.Errorf("%s has no product package", profile)
	}
	return table, err
}

func readTable(name string) (coverage.Table, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return coverage.Read(file)
}

func keepTable(table coverage.Table, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(table.Write(file), file.Close())
}

// compare prints what has changed, and counts the problems.
func compare(before, after coverage.Table, groups [][]string) (problems int) {
	fmt.Printf("\n%8s %8s %7s  %s\n", "before", "after", "points", "package")
	for _, c := range coverage.Compare(before, after, groups) {
		was, is, points := fmt.Sprintf("%.2f%%", c.Before.Percent()), fmt.Sprintf("%.2f%%", c.After.Percent()),
			fmt.Sprintf("%+.2f", c.Points())
		if c.Before.Statements == 0 {
			was, points = "new", ""
		}
		if c.After.Statements == 0 {
			is, points = "gone", ""
		}
		name := c.Name
		if c.Problem != "" {
			problems++
			name += ": " + c.Problem
		}
		fmt.Printf("%8s %8s %7s  %s\n", was, is, points, name)
	}
	fmt.Println()
	return problems
}
