package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/conformance"
)

// demandStates are what can have become of a demand, in the order of the table of counts.
var demandStates = []string{"met", "different", "partly", "missing", "out of scope"}

// documentLines is how long each source document is: no demand stands behind its end.
var documentLines = []int{379, 295, 398, 107, 380}

// A demand is one row of docs/internals/demands.md.
type demand struct {
	document, number   int
	line, state, where string
	rows, tests, files []string // what it names: rows of the table of differences, tests, files
}

var (
	demandPattern = regexp.MustCompile(`(?m)^\| D(\d+)-(\d+) \| ([0-9-]+) \| ([^|]+) \| ([a-z ]+)(?:: ([^|]+))? \| ([^|]+) \|$`)
	namedPattern  = regexp.MustCompile("`([^`]+)`")
	testPattern   = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz|Example)\w*)$`)
	countPattern  = regexp.MustCompile(`(?m)^\| (S\d|all) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	pointPattern  = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	placePattern  = regexp.MustCompile(`\bS(\d) (\d+)\b`)
)

// demands reads the page.
func demands(page string) (all []demand) {
	for _, match := range demandPattern.FindAllStringSubmatch(page, -1) {
		document, _ := strconv.Atoi(match[1]) // digits, by the pattern
		number, _ := strconv.Atoi(match[2])
		d := demand{document: document, number: number, line: match[3], state: match[5], where: match[7]}
		if match[6] != "" {
			d.rows = strings.Split(match[6], "; ")
		}
		for _, named := range namedPattern.FindAllStringSubmatch(match[7], -1) {
			if testPattern.MatchString(named[1]) {
				d.tests = append(d.tests, named[1])
			} else {
				d.files = append(d.files, named[1])
			}
		}
		all = append(all, d)
	}
	return all
}

// points are the rows of the table of differences, by name, with what the documents say.
func points(page string) map[string]string {
	_, table, _ := strings.Cut(page, "| point | the documents say | Posthaste does | because |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	found := map[string]string{}
	for _, match := range pointPattern.FindAllStringSubmatch(table, -1) {
		found[match[1]] = match[2]
	}
	return found
}

// behind tells what is wrong with a line of a document.
func behind(document int, line string) string {
	if document >= len(documentLines) {
		return fmt.Sprintf("there is no document S%d", document)
	}
	for number := range strings.SplitSeq(line, "-") {
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > documentLines[document] {
			return fmt.Sprintf("S%d has no line %s", document, line)
		}
	}
	return ""
}

// demandProblems lists what is wrong with the page: ids, lines, states, names and counts. There tells whether a test or a
// file exists; later has the requirements that are still to come.
func demandProblems(page string, rows map[string]string, later []string, there func(name string) bool) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	counts := map[string][]int{"all": make([]int, len(demandStates)+1)}
	next, last := map[int]int{}, map[int]int{}
	for _, d := range demands(page) {
		id := fmt.Sprintf("D%d-%d", d.document, d.number)
		if next[d.document]++; d.number != next[d.document] {
			say("%s: the next is D%d-%d", id, d.document, next[d.document])
			next[d.document] = d.number
		}
		if problem := behind(d.document, d.line); problem != "" {
			say("%s: %s", id, problem)
		}
		if first, _ := strconv.Atoi(strings.Split(d.line, "-")[0]); first < last[d.document] {
			say("%s: line %s comes before that of the one above", id, d.line)
		} else {
			last[d.document] = first
		}
		state := slices.Index(demandStates, d.state)
		if state < 0 {
			say("%s: there is no state %q", id, d.state)
			continue
		}
		document := fmt.Sprint("S", d.document)
		if counts[document] == nil {
			counts[document] = make([]int, len(demandStates)+1)
		}
		for _, of := range []string{document, "all"} {
			counts[of][0]++
			counts[of][state+1]++
		}
		if (d.state == "different" || d.state == "missing") != (len(d.rows) > 0) {
			say("%s: is %s and names the rows %q", id, d.state, d.rows)
		}
		for _, row := range d.rows {
			if _, is := rows[row]; !is {
				say("%s: docs/conformance.md has no row %q among the differences", id, row)
			}
		}
		if d.state == "met" && len(d.tests)+len(d.files) == 0 {
			say("%s: is met and says nowhere where", id)
		}
		if d.state == "partly" {
			say("%s: is met in part only", id)
		}
		if d.state == "missing" && !slices.ContainsFunc(later, func(id string) bool { return strings.Contains(d.where, id) }) {
			say("%s: is missing, and no requirement that is still to come is named", id)
		}
		for _, name := range slices.Concat(d.tests, d.files) {
			if !there(name) {
				say("%s: %s does not exist", id, name)
			}
		}
	}
	seen := map[string]bool{}
	for _, match := range countPattern.FindAllStringSubmatch(page, -1) {
		seen[match[1]] = true
		if got, want := strings.Join(match[2:], " "), strings.Trim(fmt.Sprint(counts[match[1]]), "[]"); got != want {
			say("%s: the table of counts has %s, the page %s", match[1], got, want)
		}
	}
	for document := range counts {
		if !seen[document] {
			say("the table of counts has no line for %s", document)
		}
	}
	if rows := strings.Count(page, "\n| D"); rows != counts["all"][0] {
		say("%d of %d rows are understood", counts["all"][0], rows)
	}
	return problems
}

// inTree tells whether a test, as folder.Name, or a file or folder is in the repository.
func inTree(t *testing.T) func(name string) bool {
	t.Helper()
	text := map[string]string{} // of a folder's tests
	return func(name string) bool {
		match := testPattern.FindStringSubmatch(name)
		if match == nil {
			_, err := os.Stat(filepath.Join(root, name))
			return err == nil
		}
		if _, known := text[match[1]]; !known {
			files, err := filepath.Glob(filepath.Join(root, match[1], "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				text[match[1]] += string(content)
			}
		}
		return strings.Contains(text[match[1]], "\nfunc "+match[2]+"(")
	}
}

// laterOnes are the requirements that docs/conformance.md leaves for later.
func laterOnes(page string) (ids []string) {
	for _, row := range conformance.Rows(page) {
		if row.Later != "" {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// The reading of the source documents is as it says: every demand has a state, what is named exists, nothing differs
// without a row, and only the console and the replay are missing.
func TestEveryDemandHasItsPlace(t *testing.T) {
	t.Parallel()
	page, rules := read(t, "docs/internals/demands.md"), read(t, "docs/conformance.md")
	for _, problem := range demandProblems(page, points(rules), laterOnes(rules), inTree(t)) {
		t.Error(problem)
	}
	if n := len(demands(page)); n < 300 {
		t.Errorf("found %d demands: this test does not see them", n)
	}
	if got := laterOnes(rules); !slices.Equal(got, []string{"DL-5", "OP-5", "OP-6"}) {
		t.Errorf("docs/conformance.md leaves %v for later", got)
	}
}

// A difference says where it is one: every row names the places in the documents, and they exist.
func TestEveryDifferenceNamesItsPlaces(t *testing.T) {
	t.Parallel()
	rules := read(t, "docs/conformance.md")
	rows := points(rules)
	_, table, _ := strings.Cut(rules, "| point | the documents say |")
	if lines := strings.Count(table, "\n| "); len(rows) < 40 || lines != len(rows) {
		t.Errorf("%d of %d rows are understood, or two have one name", len(rows), lines)
	}
	for point, says := range rows {
		places := placePattern.FindAllStringSubmatch(says, -1)
		if len(places) == 0 {
			t.Errorf("%s: no place in a document is named", point)
		}
		for _, place := range places {
			document, _ := strconv.Atoi(place[1]) // a digit, by the pattern
			if problem := behind(document, place[2]); problem != "" {
				t.Errorf("%s: %s", point, problem)
			}
		}
	}
}

// What the two tests above look for, they find.
func TestDemandsThatAreWrongAreFound(t *testing.T) {
	t.Parallel()
	const good = `
| S0 | 3 | 1 | 1 | 0 | 1 | 0 |
| S4 | 1 | 0 | 0 | 0 | 0 | 1 |
| all | 4 | 1 | 1 | 0 | 1 | 1 |

| D0-1 | 3 | a table | met | ` + "`a/b.TestC`" + ` ` + "`d.go`" + ` |
| D0-2 | 4-5 | a lock | different: claim | that row |
| D0-3 | 5 | a page | missing: admin page | OP-6 follows |
| D4-1 | 380 | tickets | out of scope | about tickets |
`
	rows := map[string]string{"claim": "", "admin page": ""}
	problems := func(page string) string {
		return strings.Join(demandProblems(page, rows, []string{"OP-6"}, func(name string) bool { return name == "a/b.TestC" || name == "d.go" }), "; ")
	}
	if got := problems(good); got != "" {
		t.Errorf("a good page: %s", got)
	}
	for _, c := range []struct{ from, to, problem string }{
		{"| D0-2 |", "| D0-4 |", "D0-4: the next is D0-2"},
		{"| D0-2 |", "| D0-1 |", "D0-1: the next is D0-2"},
		{"| D4-1 |", "| D5-1 |", "there is no document S5"},
		{"| 380 |", "| 381 |", "S4 has no line 381"},
		{"| 4-5 |", "| 1 |", "comes before"},
		{"| met |", "| done |", `there is no state "done"`},
		{"| met |", "| partly |", "D0-1: is met in part only"},
		{"| met |", "| met: claim |", "D0-1: is met and names the rows"},
		{"different: claim", "different", "D0-2: is different and names the rows"},
		{"different: claim", "different: claims", `no row "claims"`},
		{"different: claim", "different: claim; order", `no row "order"`},
		{"`a/b.TestC`", "`a/b.TestD`", "a/b.TestD does not exist"},
		{"`d.go`", "`e.go`", "e.go does not exist"},
		{"`a/b.TestC` `d.go`", "somewhere", "says nowhere where"},
		{"OP-6 follows", "some day", "no requirement that is still to come"},
		{"| all | 4 |", "| all | 5 |", "all: the table of counts has 5 1 1 0 1 1, the page 4 1 1 0 1 1"},
		{"| S4 | 1 | 0 | 0 | 0 | 0 | 1 |\n", "", "no line for S4"},
		{"| a lock |", "| a | lock |", "3 of 4 rows are understood"},
	} {
		if got := problems(strings.Replace(good, c.from, c.to, 1)); !strings.Contains(got, c.problem) {
			t.Errorf("%q for %q: got %q, want %q", c.to, c.from, got, c.problem)
		}
	}
}
