package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Figures are what a benchmark found, as the one line it ends with.
type Figures struct {
	name  string
	pairs []string
}

// NewFigures begins the last line of the benchmark of this name.
func NewFigures(name string) *Figures { return &Figures{name: name} }

// Addf appends one figure. Names and values have no spaces, so that a shell can take the line apart.
func (f *Figures) Addf(name, format string, values ...any) {
	value := strings.ReplaceAll(fmt.Sprintf(format, values...), " ", "_")
	f.pairs = append(f.pairs, name+"="+value)
}

// String is the line.
func (f *Figures) String() string { return strings.Join(append([]string{f.name}, f.pairs...), " ") }

// A Table is printed with its columns aligned.
type Table struct {
	lines []string
}

// NewTable begins with the names of the columns.
func NewTable(columns ...string) *Table {
	return &Table{lines: []string{strings.Join(columns, "\t")}}
}

// Add appends a line.
func (t *Table) Add(cells ...string) { t.lines = append(t.lines, strings.Join(cells, "\t")) }

// Print writes the table under a title.
func (t *Table) Print(to io.Writer, title string) error {
	aligned := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(aligned, "\n%s\n", title) // kept by Flush
	for _, line := range t.lines {
		_, _ = fmt.Fprintln(aligned, line)
	}
	if err := aligned.Flush(); err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	return nil
}
