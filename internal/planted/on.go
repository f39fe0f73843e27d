//go:build planted

package planted

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Built tells whether mistakes can be made.
const Built = true

var chosen = sync.OnceValue(func() Bug {
	name := Bug(os.Getenv("POSTHASTE_PLANTED"))
	if name == "" {
		return name
	}
	var names []string
	for _, d := range List() {
		if d.Bug == name {
			return name
		}
		names = append(names, string(d.Bug))
	}
	panic(fmt.Sprintf("planted: POSTHASTE_PLANTED: no bug is called %q; there are: %s", name, strings.Join(names, ", ")))
})

// Is tells whether this is the mistake that the process is to make.
func Is(bug Bug) bool { return chosen() == bug }
