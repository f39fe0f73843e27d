package shape

import (
	"cmp"
	"fmt"
	"slices"
)

// Finding is a place where a rule does not hold.
type Finding struct {
	// File is its path from the root, and Line its line; 0 where it is about the whole file or folder.
	File string
	Line int
	// Text says what is there, and what to do.
	Text string
}

// String is the finding as compilers print theirs.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

func inOrder(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return findings
}
