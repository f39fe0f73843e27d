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

	"github.com/posthaste-dev/posthaste/test/kit/conformance"
)

// demandStates are what can have become of a demand, in the order of the table of counts.
var demandStates = []string{"met", "different", "partly", "missing", "out of scope"}

// documentLines is how long each source document is: no demand stands behind its end.
var documentLines = []int{379, 295, 398, 107, 380}

// A demand is one row of docs/internals/demands.md.
type demand struct {
	document, number   int
	line, state, where string
	rows, names        []string // of the table of differences; of tests and files
}

func (d demand) id() string { return fmt.Sprintf("D%d-%d", d.document, d.number) }

// begins is the first of its lines; 0 for none.
func (d demand) begins() int {
	first, _ := strconv.Atoi(strings.Split(d.line, "-")[0]) // what is no number is found elsewhere
	return first
}

var (
	demandPattern = regexp.MustCompile(
		`(?m)^\| D(\d+)-(\d+) \| ([0-9-]+) \| [^|]+ \| ([a-z ]+)(?:: ([^|]+))? \| ([^|]+) \|$`)
	namedPattern = regexp.MustCompile("`([^`]+)`")
	testPattern  = regexp.MustCompile(`^([a-z0-9/-]+)\.((?:Test|Fuzz|Example)\w*)$`)
	countPattern = regexp.MustCompile(`(?m)^\| (S\d|all) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	pointPattern = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	placePattern = regexp.MustCompile(`\bS(\d) (\d+)\b`)
)

// demands reads the page.
func demands(page string) (all []demand) {
	for _, match := range demandPattern.FindAllStringSubmatch(page, -1) {
		document, _ := strconv.Atoi(match[1]) // digits, by the pattern
		number, _ := strconv.Atoi(match[2])
		d := demand{document: document, number: number, line: match[3], state: match[4], where: match[6]}
		if match[5] != "" {
			d.rows = strings.Split(match[5], "; ")
		}
		for _, named := range namedPattern.FindAllStringSubmatch(match[6], -1) {
			d.names = append(d.names, named[1])
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

// A reading is what is held against the page: the rows of the table of differences, the requirements that are still to
// come, and whether a test or a file exists.
type reading struct {
	rows  map[string]string
	later []string
	there func(name string) bool

	problems []string
	counts   map[string][]int // by document, as the page's own table: all, then each state
	last     map[int]demand   // the one before, by document
}

func (r *reading) sayf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// problems lists what is wrong with the page: ids, lines, states, names and counts.
func problems(page string, rows map[string]string, later []string, there func(name string) bool) []string {
	r := &reading{rows: rows, later: later, there: there, counts: map[string][]int{}, last: map[int]demand{}}
	for _, d := range demands(page) {
		r.position(d)
		r.named(d)
		state := slices.Index(demandStates, d.state)
		if state < 0 {
			r.sayf("%s: there is no state %q", d.id(), d.state)
			continue
		}
		for _, of := range []string{fmt.Sprint("S", d.document), "all"} {
			if r.counts[of] == nil {
				r.counts[of] = make([]int, len(demandStates)+1)
			}
			r.counts[of][0]++
			r.counts[of][state+1]++
		}
	}
	r.counted(page)
	return r.problems
}

// position looks at the id and the line: one after the other, and in the document.
func (r *reading) position(d demand) {
	before := r.last[d.document]
	if d.number != before.number+1 {
		r.sayf("%s: the next is D%d-%d", d.id(), d.document, before.number+1)
	}
	if problem := behind(d.document, d.line); problem != "" {
		r.sayf("%s: %s", d.id(), problem)
	}
	if d.begins() < before.begins() {
		r.sayf("%s: line %s comes before that of the one above", d.id(), d.line)
	}
	r.last[d.document] = d
}

// named looks at what the demand names: as its state needs it, and there.
func (r *reading) named(d demand) {
	if (d.state == "different" || d.state == "missing") != (len(d.rows) > 0) {
		r.sayf("%s: is %s and names the rows %q", d.id(), d.state, d.rows)
	}
	for _, row := range d.rows {
		if _, is := r.rows[row]; !is {
			r.sayf("%s: docs/internals/conformance.md has no row %q among the differences", d.id(), row)
		}
	}
	switch {
	case d.state == "met" && len(d.names) == 0:
		r.sayf("%s: is met and says nowhere where", d.id())
	case d.state == "partly":
		r.sayf("%s: is met in part only", d.id())
	case d.state == "missing" &&
		!slices.ContainsFunc(r.later, func(id string) bool { return strings.Contains(d.where, id) }):
		r.sayf("%s: is missing, and no requirement that is still to come is named", d.id())
	}
	for _, name := range d.names {
		if !r.there(name) {
			r.sayf("%s: %s does not exist", d.id(), name)
		}
	}
}

// counted compares the page's table of counts with what was counted.
func (r *reading) counted(page string) {
	seen := map[string]bool{}
	for _, match := range countPattern.FindAllStringSubmatch(page, -1) {
		seen[match[1]] = true
		if got, want := strings.Join(match[2:], " "), strings.Trim(fmt.Sprint(r.counts[match[1]]), "[]"); got != want {
			r.sayf("%s: the table of counts has %s, the page %s", match[1], got, want)
		}
	}
	understood := 0
	for document, count := range r.counts {
		if !seen[document] {
			r.sayf("the table of counts has no line for %s", document)
		}
		if document == "all" {
			understood = count[0]
		}
	}
	if rows := strings.Count(page, "\n| D"); rows != understood {
		r.sayf("%d of %d rows are understood", understood, rows)
	}
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

// laterOnes are the requirements that docs/internals/conformance.md leaves for later.
func laterOnes(page string) (ids []string) {
	for _, row := range conformance.Rows(page) {
		if row.Later != "" {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// The reading of the source documents is as it says: every demand has a state, what is named exists, nothing differs
// without a row, and nothing is missing.
func TestEveryDemandHasItsPlace(t *testing.T) {
	t.Parallel()
	page, rules := read(t, "docs/internals/demands.md"), read(t, "docs/internals/conformance.md")
	for _, problem := range problems(page, points(rules), laterOnes(rules), inTree(t)) {
		t.Error(problem)
	}
	if n := len(demands(page)); n < 300 {
		t.Errorf("found %d demands: this test does not see them", n)
	}
	if got := laterOnes(rules); len(got) > 0 {
		t.Errorf("docs/internals/conformance.md leaves %v for later", got)
	}
}

// A difference says where it is one: every row names the places in the documents, and they exist.
func TestEveryDifferenceNamesItsPlaces(t *testing.T) {
	t.Parallel()
	rules := read(t, "docs/internals/conformance.md")
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
	there := func(name string) bool { return name == "a/b.TestC" || name == "d.go" }
	found := func(page string) string { return strings.Join(problems(page, rows, []string{"OP-6"}, there), "; ") }
	if got := found(good); got != "" {
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
		if got := found(strings.Replace(good, c.from, c.to, 1)); !strings.Contains(got, c.problem) {
			t.Errorf("%q for %q: got %q, want %q", c.to, c.from, got, c.problem)
		}
	}
}
