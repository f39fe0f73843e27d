package coverage

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lower is by how many points the coverage of a package may be lower than before: where a test waits for chance, a
// branch is run in one run and not in the next.
const Lower = 0.3

// Change is a package before and after, or several that are compared together.
type Change struct {
	Name          string
	Before, After Count
	// Problem says what is wrong; empty where nothing is.
	Problem string
}

// Points is by how much the coverage has grown.
func (c Change) Points() float64 { return c.After.Percent() - c.Before.Percent() }

// Compare compares two tables. Packages between which code has moved are compared together: each group is a list of
// folders, of which some may be in one table only. A package that is gone without being in a group is a problem.
func Compare(before, after Table, groups [][]string) []Change {
	together := map[string]string{}
	for _, group := range groups {
		for _, folder := range group {
			together[folder] = strings.Join(group, ",")
		}
	}
	changes := map[string]*Change{}
	change := func(folder string) *Change {
		name, grouped := together[folder]
		if !grouped {
			name = folder
		}
		if changes[name] == nil {
			changes[name] = &Change{Name: name}
		}
		return changes[name]
	}
	for folder, count := range before {
		c := change(folder)
		c.Before = c.Before.plus(count)
	}
	for folder, count := range after {
		c := change(folder)
		c.After = c.After.plus(count)
	}
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c := changes[name]
		switch {
		case c.Before.Statements > 0 && c.After.Statements == 0:
			c.Problem = "gone: compare it together with where its code is now"
		case c.Before.Statements > 0 && c.Points() < -Lower:
			c.Problem = fmt.Sprintf("%.2f points lower, %.1f at most", -c.Points(), Lower)
		}
		all = append(all, *c)
	}
	return all
}
