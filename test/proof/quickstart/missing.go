package quickstart

import (
	"context"
	"fmt"
	"strings"
)

// A Missing is something that is left out: the command must fail and say what to do, and when that is done it must
// work.
type Missing struct {
	Name    string
	Command string
	In      Terminal
	Says    []string
	// Fix does what was said, and returns the terminal in which the command works. Nil: nothing can be done here.
	Fix func(ctx context.Context) (Terminal, error)
}

// Found is what came of it.
type Found struct {
	Name     string
	Problems []string
}

// Try leaves the thing out, and then does what the error says.
func (m Missing) Try(ctx context.Context) (*Found, error) {
	found := &Found{Name: m.Name}
	problem := func(format string, args ...any) {
		found.Problems = append(found.Problems, "missing "+m.Name+": "+fmt.Sprintf(format, args...))
	}
	shown, err := m.In.Run(ctx, m.Command)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("quickstart: %w", ctx.Err())
	}
	if err == nil {
		problem("%s did not fail", m.Command)
	}
	for _, text := range m.Says {
		if !strings.Contains(shown, text) {
			problem("%s does not say %q: %s", m.Command, text, strings.TrimSpace(shown))
		}
	}
	if m.Fix == nil {
		return found, nil
	}
	in, err := m.Fix(ctx)
	if err != nil {
		problem("what it says cannot be done: %v", err)
		return found, nil
	}
	if shown, err := in.Run(ctx, m.Command); err != nil {
		problem("what it says does not help: %v: %s", err, strings.TrimSpace(shown))
	}
	return found, nil
}
