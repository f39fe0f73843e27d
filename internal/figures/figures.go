// Package figures makes the last line that proofs, benchmarks and `outboxctl prune` print: a name, and name=value pairs
// that a shell can take apart.
package figures

import (
	"fmt"
	"strings"
)

// Line is such a line in the making.
type Line struct {
	name  string
	pairs []string
}

// New begins the last line of the proof or benchmark of this name.
func New(name string) *Line { return &Line{name: name} }

// Addf appends one figure. A space in the value would end it, so it becomes an underscore.
func (l *Line) Addf(name, format string, values ...any) {
	value := strings.ReplaceAll(fmt.Sprintf(format, values...), " ", "_")
	l.pairs = append(l.pairs, name+"="+value)
}

// String is the line.
func (l *Line) String() string { return strings.Join(append([]string{l.name}, l.pairs...), " ") }
