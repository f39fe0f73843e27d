// Package conformance holds two pages to their word. Every requirement has a row in docs/internals/conformance.md, and
// every test that a row names, or that docs/internals/proofs.md names, has run and passed. The files of
// a row are there.
package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// groups are the requirements' ids: a prefix and how many there are.
var groups = []struct {
	prefix string
	count  int
}{{"EM", 13}, {"RG", 6}, {"RL", 16}, {"DL", 5}, {"IN", 5}, {"OP", 8}}

// IDs lists every requirement.
func IDs() []string {
	var ids []string
	for _, group := range groups {
		for n := range group.count {
			ids = append(ids, fmt.Sprintf("%s-%d", group.prefix, n+1))
		}
	}
	return ids
}

// A Row is one requirement on the page.
type Row struct {
	ID    string
	Tests []string // as folder.TestName
	Later string   // where it will be shown, when it is not yet
}

var (
	rowPattern  = regexp.MustCompile(`(?m)^\| ([A-Z]{2}-\d+) \|(.*)\|\s*$`)
	filePattern = regexp.MustCompile("`([a-z0-9_.-]+/[A-Za-z0-9_/.-]+\\.(?:go|sql|md|yaml))`")
	testPattern = regexp.MustCompile("`([a-z0-9/-]+\\.(?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
)

// Rows reads the page.
func Rows(page string) []Row {
	var rows []Row
	for _, match := range rowPattern.FindAllStringSubmatch(page, -1) {
		cells := strings.Split(match[2], "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		row := Row{ID: match[1]}
		for _, test := range testPattern.FindAllStringSubmatch(last, -1) {
			row.Tests = append(row.Tests, test[1])
		}
		if _, later, found := strings.Cut(last, "later: "); found {
			row.Later = later
		}
		rows = append(rows, row)
	}
	return rows
}

// Results are the outcomes of tests, by folder.TestName.
type Results map[string]string

// Add reads what `go test -json` wrote. Of a test that ran more than once, the worst counts.
func (r Results) Add(from io.Reader, modulePath string) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20) // a failing test may print a lot
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" || strings.Contains(event.Test, "/") {
			continue
		}
		name := strings.TrimPrefix(event.Package, modulePath+"/") + "." + event.Test
		switch event.Action {
		case "fail", "skip":
			r[name] = event.Action
		case "pass":
			if r[name] == "" {
				r[name] = event.Action
			}
		}
	}
	return lines.Err()
}

// Check compares the page with the results and lists what is wrong.
func Check(page string, results Results) (rows []Row, problems []string) {
	rows = Rows(page)
	seen := map[string]int{}
	for _, row := range rows {
		seen[row.ID]++
		if len(row.Tests) == 0 && row.Later == "" {
			problems = append(problems, row.ID+": names no test and does not say where it will be shown")
		}
		for _, test := range row.Tests {
			if outcome := results[test]; outcome != "pass" {
				problems = append(problems, fmt.Sprintf("%s: %s did not pass (%s)", row.ID, test, orMissing(outcome)))
			}
		}
	}
	for _, id := range IDs() {
		if seen[id] != 1 {
			problems = append(problems, fmt.Sprintf("%s: %d rows, want one", id, seen[id]))
		}
		delete(seen, id)
	}
	for id := range seen {
		problems = append(problems, id+": there is no such requirement")
	}
	slices.Sort(problems)
	return rows, problems
}

// CheckNamed asks of every test that a page names, in a table or in its text, whether it passed. Tests has each once.
func CheckNamed(page string, results Results) (tests, problems []string) {
	for _, match := range testPattern.FindAllStringSubmatch(page, -1) {
		tests = append(tests, match[1])
	}
	slices.Sort(tests)
	tests = slices.Compact(tests)
	for _, test := range tests {
		if outcome := results[test]; outcome != "pass" {
			problems = append(problems, fmt.Sprintf("%s did not pass (%s)", test, orMissing(outcome)))
		}
	}
	return tests, problems
}

// CheckFiles lists the files that a page names, by their paths from the root, and that are not there.
func CheckFiles(page string, there func(path string) bool) (problems []string) {
	for _, match := range filePattern.FindAllStringSubmatch(page, -1) {
		if !there(match[1]) {
			problems = append(problems, "there is no file "+match[1])
		}
	}
	return problems
}

func orMissing(outcome string) string {
	if outcome == "" {
		return "it did not run"
	}
	return outcome
}
