package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ids are a letter and how many there are, numbered from 1.
type ids struct {
	prefix string
	count  int
}

// faultIDs are the faults of the fault model; docs/internals/faults.md has a line for each.
var faultIDs = []ids{
	{"A", 24}, {"W", 4}, {"C", 22}, {"V", 6}, {"P", 25}, {"S-", 10}, {"D", 12}, {"R", 16}, {"I", 16}, {"H", 10},
}

// promiseIDs are the promises; docs/reference/guarantees.md has a section for each.
var promiseIDs = []ids{{"S", 14}, {"L", 5}}

// An entry is what a page says about one id.
type entry struct {
	id    string
	shown string // its words on what shows it
}

var (
	faultPattern = regexp.MustCompile(`(?m)^\| ([A-Z]-?\d+) \|(.*)\|[ \t]*$`)
	namePattern  = regexp.MustCompile("`([^`]*)`")
	testPattern  = regexp.MustCompile(`^([a-z0-9/-]+)\.((?:Test|Fuzz|Example)[A-Za-z0-9_]*)$`)
)

// faultEntries reads the tables of docs/internals/faults.md: the id is the first cell, what shows it the last of four.
func faultEntries(page string) (entries []entry, problems []string) {
	for _, match := range faultPattern.FindAllStringSubmatch(page, -1) {
		cells := strings.Split(match[2], "|")
		if len(cells) != 3 {
			problems = append(problems, fmt.Sprintf("%s: %d cells, want four", match[1], len(cells)+1))
			continue
		}
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				problems = append(problems, match[1]+": a cell is empty")
			}
		}
		entries = append(entries, entry{id: match[1], shown: strings.TrimSpace(cells[2])})
	}
	return entries, problems
}

// promiseEntries reads the sections of docs/reference/guarantees.md: "### S1 ...", with paragraphs that begin with
// "**Limits.**" and "**Shown by.**".
func promiseEntries(page string) (entries []entry, problems []string) {
	for _, section := range strings.Split("\n"+page, "\n### ")[1:] {
		id, _, _ := strings.Cut(section, " ")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "\n**Limits.** ") {
			problems = append(problems, id+": says nothing about its limits")
		}
		_, shown, _ := strings.Cut(section, "\n**Shown by.** ")
		entries = append(entries, entry{id: id, shown: strings.TrimSpace(shown)})
	}
	return entries, problems
}

// checkIDs wants each id once, and no others.
func checkIDs(entries []entry, want []ids) (problems []string) {
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.id]++
	}
	for _, group := range want {
		for n := range group.count {
			id := fmt.Sprintf("%s%d", group.prefix, n+1)
			if seen[id] != 1 {
				problems = append(problems, fmt.Sprintf("%s: %d times, want once", id, seen[id]))
			}
			delete(seen, id)
		}
	}
	for id := range seen {
		problems = append(problems, id+": there is no such id")
	}
	return problems
}

// tree answers what there is in the repository.
type tree struct {
	tests    func(folder, name string) bool
	makefile string
}

// checkShown wants tests or make targets that exist, or a reason: "later: ..." or "not tested: ...".
func (r tree) checkShown(e entry) (problems []string) {
	named := 0
	for _, match := range namePattern.FindAllStringSubmatch(flat(e.shown), -1) {
		name := match[1]
		if target, isTarget := strings.CutPrefix(name, "make "); isTarget {
			named++
			if !strings.Contains("\n"+r.makefile, "\n"+target+":") {
				problems = append(problems, fmt.Sprintf("%s: the Makefile has no target %q", e.id, target))
			}
		} else if test := testPattern.FindStringSubmatch(name); test != nil {
			named++
			if !r.tests(test[1], test[2]) {
				problems = append(problems, fmt.Sprintf("%s: %s has no %s", e.id, test[1], test[2]))
			}
		} else if strings.Contains(name, ".Test") || strings.Contains(name, ".Fuzz") {
			problems = append(problems, fmt.Sprintf("%s: %q is not a folder and a test", e.id, name))
		}
	}
	if named == 0 && !reason(e.shown, "later: ") && !reason(e.shown, "not tested: ") {
		problems = append(problems, e.id+": names no test and no proof, and gives no reason")
	}
	return problems
}

// reason tells whether a text gives a reason of some length.
func reason(text, mark string) bool {
	_, why, found := strings.Cut(text, mark)
	return found && len(strings.TrimSpace(why)) >= len("the relay")
}

// theTree looks into the files.
func theTree(t *testing.T) tree {
	t.Helper()
	sources := map[string]string{} // of the tests, by folder
	return tree{makefile: read(t, "Makefile"), tests: func(folder, name string) bool {
		text, known := sources[folder]
		if !known {
			files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				text += string(content)
			}
			sources[folder] = text
		}
		return strings.Contains(text, "\nfunc "+name+"(")
	}}
}

func report(t *testing.T, page string, problems []string) {
	t.Helper()
	slices.Sort(problems)
	for _, problem := range problems {
		t.Errorf("%s: %s", page, problem)
	}
}

func TestEveryFaultIsShownOrExplained(t *testing.T) {
	t.Parallel()
	const page = "docs/internals/faults.md"
	entries, problems := faultEntries(read(t, page))
	problems = append(problems, checkIDs(entries, faultIDs)...)
	there := theTree(t)
	for _, e := range entries {
		problems = append(problems, there.checkShown(e)...)
	}
	report(t, page, problems)
}

func TestEveryPromiseIsShownOrExplained(t *testing.T) {
	t.Parallel()
	const page = "docs/reference/guarantees.md"
	entries, problems := promiseEntries(read(t, page))
	problems = append(problems, checkIDs(entries, promiseIDs)...)
	there := theTree(t)
	for _, e := range entries {
		problems = append(problems, there.checkShown(e)...)
	}
	report(t, page, problems)
}

// A bug that was found keeps a test that fails without its fix.
func TestEveryBugThatWasFoundKeepsItsTest(t *testing.T) {
	t.Parallel()
	const page = "docs/internals/proofs.md"
	there := theTree(t)
	var problems []string
	bugs := 0
	for line := range strings.Lines(read(t, page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) == 3 && strings.HasPrefix(strings.TrimSpace(cells[0]), "proof-") {
			bugs++
			problems = append(problems, there.checkShown(entry{id: strings.TrimSpace(cells[1]), shown: cells[2]})...)
		}
	}
	if bugs < 10 {
		problems = append(problems, fmt.Sprintf("%d bugs: the table is read wrongly", bugs))
	}
	report(t, page, problems)
}

// The checks themselves must be able to refuse.
func TestThePagesCanBeRejected(t *testing.T) {
	t.Parallel()
	there := tree{makefile: "all: ## All\nproof: all\n\tgo run\n", tests: func(folder, name string) bool {
		return folder == "test/a" && name == "TestX"
	}}
	two := []ids{{"A", 2}}
	line := func(id, shown string) string { return "| " + id + " | a fault | what happens | " + shown + " |\n" }
	good := line("A1", "`test/a.TestX`")
	for name, test := range map[string]struct{ page, problem string }{
		"all is well": {good + line("A2", "`make proof`"), ""},
		"later":       {good + line("A2", "later: the inbox"), ""},
		"why not":     {good + line("A2", "not tested: nothing of ours could differ"), ""},
		"missing":     {good, "A2: 0 times"},
		"twice":       {good + good + line("A2", "later: the inbox"), "A1: 2 times"},
		"an id that is none": {
			good + line("A2", "later: the inbox") + line("A3", "later: the inbox"), "A3: there is no such id",
		},
		"no such test":        {good + line("A2", "`test/a.TestY`"), "test/a has no TestY"},
		"no such folder":      {good + line("A2", "`test/b.TestX`"), "test/b has no TestX"},
		"no such target":      {good + line("A2", "`make peace`"), `no target "peace"`},
		"a name misspelt":     {good + line("A2", "`test/a.TestX` `A.Test X`"), "is not a folder and a test"},
		"nothing at all":      {good + line("A2", "soon"), "gives no reason"},
		"a reason of nothing": {good + line("A2", "later: "), "gives no reason"},
		"an empty cell":       {good + "| A2 | a fault |  | later: the inbox |\n", "a cell is empty"},
		"a cell too many":     {good + "| A2 | a fault | x | y | later: the inbox |\n", "5 cells"},
	} {
		entries, problems := faultEntries(test.page)
		problems = append(problems, checkIDs(entries, two)...)
		for _, e := range entries {
			problems = append(problems, there.checkShown(e)...)
		}
		got := strings.Join(problems, "; ")
		if test.problem == "" && got != "" || !strings.Contains(got, test.problem) {
			t.Errorf("%s: got %q, want %q", name, got, test.problem)
		}
	}
}

func TestASectionNeedsItsLimits(t *testing.T) {
	t.Parallel()
	entries, problems := promiseEntries("# Page\n\n### S1 One\n\nText.\n\n**Limits.** None.\n\n**Shown by.** `a.TestX`\n" +
		"\n## Next\n\n### S2 Two\n\n**Shown by.** later: it\n")
	if len(entries) != 2 || entries[0].shown != "`a.TestX`" || entries[1].shown != "later: it" {
		t.Errorf("got %+v", entries)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "S2: says nothing about its limits") {
		t.Errorf("got %v", problems)
	}
}
