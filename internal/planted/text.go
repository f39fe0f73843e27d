package planted

import (
	"fmt"
	"strings"
)

// Change is a mistake in a text of ours, a statement mostly: in the file of this name, From becomes To.
type Change struct {
	Bug            Bug
	File, From, To string
}

// Text returns the text of a file with the mistake in it that the process is to make, if it is one of these.
func Text(file, text string, changes ...Change) string {
	for _, c := range changes {
		if c.File == file && Is(c.Bug) {
			text = c.apply(text)
		}
	}
	return text
}

// apply panics when there is nothing to change: a mistake that is not made would be a mistake that is not found.
func (c *Change) apply(text string) string {
	if !strings.Contains(text, c.From) {
		panic(fmt.Sprintf("planted: %s: %s does not say %q any more", c.Bug, c.File, c.From))
	}
	return strings.ReplaceAll(text, c.From, c.To)
}
