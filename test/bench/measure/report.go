package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

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
