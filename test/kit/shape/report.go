package shape

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Check is a rule, and where it does not hold.
type Check struct {
	// Name is that of its figure.
	Name string
	// Rule says what must hold.
	Rule     string
	Findings []Finding
}

// Report is what was measured.
type Report struct {
	Modules, Packages                     int
	ProductLines, ExampleLines, TestLines int
	Exported                              []Exported
	LongestFile, LongestFunction          Longest
	// Excluded counts what was not measured, by the reason.
	Excluded map[string]int
	Checks   []Check
}

// Longest is the longest of its kind.
type Longest struct {
	Name  string
	Lines int
}

// Measure measures a repository, which has mutants of these names.
func (r *Repository) Measure(mutants ...string) (*Report, error) {
	report := &Report{Modules: len(r.modules), Exported: r.exported(), Excluded: r.excluded}
	r.count(report)
	requires, err := r.rootRequires()
	if err != nil {
		return nil, err
	}
	modules, err := r.wrongModules()
	if err != nil {
		return nil, err
	}
	interfaces, err := r.bigInterfaces()
	if err != nil {
		return nil, err
	}
	outside := "outside " + coreFolder + " and " + storeFolder
	report.Checks = []Check{
		{"mutant_sites", "what users compile knows nothing of mutants; outbox-torture has its own", r.mutantSites(mutants)},
		{"root_requires", "the root module requires nothing", requires},
		{"wrong_modules", fmt.Sprintf("the modules are those of %s and go.work, and %d", architecture, wantModules), modules},
		{
			"big_interfaces", fmt.Sprintf("interfaces have %d methods at most, outside tests and %s", maxMethods, coreFolder),
			interfaces,
		},
		{"long_functions", fmt.Sprintf("functions have %d lines at most", maxFunctionLines), r.longFunctions()},
		{"long_files", fmt.Sprintf("Go files have %d lines at most", maxFileLines), r.longFiles()},
		{"long_lines", fmt.Sprintf("lines of Go, SQL, Lua and shell have %d columns at most", maxColumns), r.longLines()},
		{"old_words", "names of Go and SQL have no old word, " + outside, r.oldNames()},
	}
	for i := range report.Checks {
		inOrder(report.Checks[i].Findings)
	}
	return report, nil
}

// count fills in what is only counted. Scripts are no part of the lines: they are neither product nor test.
func (r *Repository) count(report *Report) {
	packages := map[string]bool{}
	for _, s := range r.sources {
		if s.language == shellLanguage {
			continue
		}
		switch s.class {
		case product:
			report.ProductLines += len(s.lines)
		case example:
			report.ExampleLines += len(s.lines)
		case test:
			report.TestLines += len(s.lines)
		}
		if s.isGo() {
			packages[s.folder()] = true
			report.LongestFile.take(s.path, len(s.lines))
		}
	}
	report.Packages = len(packages)
	for _, f := range r.functions() {
		report.LongestFunction.take(f.file+":"+f.name, f.lines)
	}
}

func (l *Longest) take(name string, lines int) {
	if lines > l.Lines {
		*l = Longest{name, lines}
	}
}

// OK tells whether every rule holds.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return len(c.Findings) > 0 })
}

// Line is the last line, for whoever compares it with another.
func (r *Report) Line() string {
	exported := 0
	for _, e := range r.Exported {
		exported += e.Names
	}
	line := figures.New("house")
	line.Addf("modules", "%d", r.Modules)
	line.Addf("packages", "%d", r.Packages)
	line.Addf("product_lines", "%d", r.ProductLines)
	line.Addf("example_lines", "%d", r.ExampleLines)
	line.Addf("test_lines", "%d", r.TestLines)
	line.Addf("exported", "%d", exported)
	line.Addf("longest_file", "%d", r.LongestFile.Lines)
	line.Addf("longest_function", "%d", r.LongestFunction.Lines)
	for _, c := range r.Checks {
		line.Addf(c.Name, "%d", len(c.Findings))
	}
	line.Addf("ok", "%t", r.OK())
	return line.String()
}

// Print writes the report: the counts, and for each rule that does not hold its first findings, so many at most.
func (r *Report) Print(to io.Writer, most int) {
	fmt.Fprintf(to, "%-48s %8s %8s\n", "public package", "exported", "members")
	for _, e := range r.Exported {
		fmt.Fprintf(to, "%-48s %8d %8d\n", e.Package, e.Names, e.Members)
	}
	fmt.Fprintf(to, "\nlongest file      %5d lines  %s\n", r.LongestFile.Lines, r.LongestFile.Name)
	fmt.Fprintf(to, "longest function  %5d lines  %s\n", r.LongestFunction.Lines, r.LongestFunction.Name)
	for _, reason := range slices.Sorted(maps.Keys(r.Excluded)) {
		fmt.Fprintf(to, "not measured      %5d        %s\n", r.Excluded[reason], reason)
	}
	fmt.Fprintf(to, "\n%-15s %6s  %s\n", "check", "found", "rule")
	for _, c := range r.Checks {
		fmt.Fprintf(to, "%-15s %6d  %s\n", c.Name, len(c.Findings), c.Rule)
	}
	for _, c := range r.Checks {
		c.print(to, most)
	}
	fmt.Fprintln(to)
}

func (c *Check) print(to io.Writer, most int) {
	if len(c.Findings) == 0 {
		return
	}
	fmt.Fprintf(to, "\n%s: %s\n", c.Name, c.Rule)
	for i, finding := range c.Findings {
		if i == most {
			fmt.Fprintf(to, "  and %d more: -findings all prints them\n", len(c.Findings)-i)
			return
		}
		fmt.Fprintf(to, "  %s\n", finding)
	}
}

// Folders counts the findings of a check by folder.
func (c *Check) Folders() map[string]int {
	folders := map[string]int{}
	for _, finding := range c.Findings {
		folders[path.Dir(finding.File)]++
	}
	return folders
}

// PrintFolders writes how many findings each folder has, the most first.
func (r *Report) PrintFolders(to io.Writer) {
	for _, c := range r.Checks {
		folders := c.Folders()
		fmt.Fprintf(to, "%s: %d\n", c.Name, len(c.Findings))
		for _, folder := range slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
			return cmp.Or(folders[b]-folders[a], cmp.Compare(a, b))
		}) {
			fmt.Fprintf(to, "  %5d  %s\n", folders[folder], folder)
		}
	}
}

// Only leaves the checks of these names, with commas between them; all if there is none.
func (r *Report) Only(names string) error {
	if names == "" {
		return nil
	}
	var left []Check
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
		if at < 0 {
			return fmt.Errorf("shape: there is no check %q", name)
		}
		left = append(left, r.Checks[at])
	}
	r.Checks = left
	return nil
}
