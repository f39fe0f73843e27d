package quickstart

import (
	"fmt"
	"io"
	"slices"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// The musts: so many commands and seconds from the install to the first event on screen.
const (
	MostCommands = 3
	MostSeconds  = 30
)

// wanted is what has to be left out.
var wanted = []string{"table", "stream", "grant", "password", "database"}

// Report is what was found.
type Report struct {
	Short          bool
	InstallSeconds float64
	Readme, Module *Walked
	Missing        []*Found
	Blocks         Blocks
}

// Problems are what was broken and what was tested too little.
func (r *Report) Problems() (list []string) {
	is := func(broken bool, format string, args ...any) {
		if broken {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	for name, w := range map[string]*Walked{"README": r.Readme, "the module": r.Module} {
		for _, problem := range w.Problems {
			is(true, "%s: %s", name, problem)
		}
		is(w.Delivered == "", "%s: no event was on screen", name)
		is(w.Commands > MostCommands, "%s: %d commands, at most %d are allowed", name, w.Commands, MostCommands)
		is(w.Commands == 0, "%s: nothing was typed", name)
	}
	// The short form runs beside others: there it decides that it works, and not how long it takes.
	is(!r.Short && r.Readme.Seconds > MostSeconds,
		"README: %.1f s until the event was on screen, at most %d are allowed", r.Readme.Seconds, MostSeconds)
	is(!r.Short && r.Module.Seconds > MostSeconds,
		"the module: %.1f s until the event was handled, at most %d are allowed", r.Module.Seconds, MostSeconds)
	tested := map[string]bool{}
	for _, found := range r.Missing {
		tested[found.Name] = true
		list = append(list, found.Problems...)
	}
	for _, name := range wanted {
		is(!tested[name], "it was not tried without a %s", name)
	}
	return append(list, r.Blocks.wrong()...)
}

// wrong is what was broken, and what was tested too little.
func (b *Blocks) wrong() []string {
	list := slices.Clone(b.Problems)
	for name, count := range map[string]int{"run": b.Run, "compiled": b.Compiled, "compared": b.Compared} {
		if count == 0 {
			list = append(list, "no block was "+name)
		}
	}
	if len(b.NotRun) > MostNotRun {
		list = append(list, fmt.Sprintf("%d blocks are not run, at most %d are allowed", len(b.NotRun), MostNotRun))
	}
	if done := b.Run + b.Compiled + b.Compared + len(b.NotRun); done != b.All {
		list = append(list, fmt.Sprintf("something came of %d of %d blocks", done, b.All))
	}
	return list
}

// Print prints the report, the figures last.
func (r *Report) Print(to io.Writer) (ok bool, err error) {
	problems := r.Problems()
	for _, problem := range problems {
		if _, err := fmt.Fprintln(to, "PROBLEM:", problem); err != nil {
			return false, fmt.Errorf("quickstart: %w", err)
		}
	}
	for _, w := range []*Walked{r.Readme, r.Module} {
		if _, err := fmt.Fprintln(to, w.Delivered); err != nil {
			return false, fmt.Errorf("quickstart: %w", err)
		}
	}
	for _, block := range r.Blocks.NotRun {
		if _, err := fmt.Fprintln(to, "not run:", block); err != nil {
			return false, fmt.Errorf("quickstart: %w", err)
		}
	}
	line := figures.New("proof-quickstart")
	line.Addf("install_s", "%.1f", r.InstallSeconds)
	line.Addf("readme_commands", "%d", r.Readme.Commands)
	line.Addf("readme_s", "%.1f", r.Readme.Seconds)
	line.Addf("module_commands", "%d", r.Module.Commands)
	line.Addf("module_s", "%.1f", r.Module.Seconds)
	line.Addf("left_out", "%d", len(r.Missing))
	line.Addf("blocks", "%d", r.Blocks.All)
	line.Addf("run", "%d", r.Blocks.Run)
	line.Addf("compiled", "%d", r.Blocks.Compiled)
	line.Addf("compared", "%d", r.Blocks.Compared)
	line.Addf("not_run", "%d", len(r.Blocks.NotRun))
	line.Addf("problems", "%d", len(problems))
	line.Addf("ok", "%t", len(problems) == 0)
	_, err = fmt.Fprintln(to, line)
	return len(problems) == 0, err
}
