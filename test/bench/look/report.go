package look

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// Found is what a command took.
type Found struct {
	command
	// Time is that of the whole program, the median of the calls; Database that of its statements, on the average.
	Time, Worst, Database time.Duration
	Pages                 int64
}

// Report is the outcome of a run.
type Report struct {
	Plan     Plan
	Commands []Found
	// WALBefore and WALAfter are the bytes that an emit writes without and with the optional look-ups.
	WALBefore, WALAfter float64
	// Open is what consoles cost that are left open, each on another screen, while nothing else happens.
	Open []Open
	// Flows are the stretches in which events flowed, of which Lost did not arrive.
	Flows []Flow
	Lost  int
	Took  time.Duration

	screens map[string][]time.Duration // how long each took meanwhile
}

// Problems lists the musts that were missed.
func (r *Report) Problems() (problems []string) {
	if len(r.Commands) != len(everything()) || r.WALBefore <= 0 || r.WALAfter <= r.WALBefore {
		problems = append(problems, "too little was tested")
	}
	for _, found := range r.Commands {
		if r.Plan.Timed && found.Time > found.limit() {
			problems = append(problems, fmt.Sprintf("%s took %s, at most %s", found.name, found.Time, found.limit()))
		}
		if r.Plan.Timed && found.lookup && found.Database > mostLookup {
			problems = append(problems, fmt.Sprintf("%s took the database %s, at most %s", found.name, found.Database,
				mostLookup))
		}
		if found.Pages <= 0 || !r.Plan.Timed && found.Pages > found.pages {
			problems = append(problems, fmt.Sprintf("%s looked at %d pages, at most %d: %s", found.name, found.Pages,
				found.pages, found.why))
		}
	}
	return append(problems, r.watchProblems()...)
}

// Print writes the table, the musts that were missed, and the line of figures.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("command", "time", "worst", "in the database", "pages", "what")
	line := figures.New("bench-look")
	line.Addf("events", "%d", r.Plan.Events)
	var slowest, slowestScreen time.Duration
	for _, found := range r.Commands {
		what := strings.Join(found.args, " ")
		if found.screen() {
			what = "/" + found.path
			if found.most == 0 {
				slowestScreen = max(slowestScreen, found.Time)
			}
		} else {
			slowest = max(slowest, found.Time)
		}
		table.Add(found.name, milliseconds(found.Time), milliseconds(found.Worst), milliseconds(found.Database),
			fmt.Sprint(found.Pages), what)
		if found.lookup {
			line.Addf(found.name+"_ms", "%.1f", found.Database.Seconds()*1e3)
		}
		line.Addf(found.name+"_pages", "%d", found.Pages)
	}
	if err := table.Print(to, "What it takes to look"); err != nil {
		return err
	}
	if err := r.printWatched(to, line); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // the last line tells
	}
	line.Addf("slowest_ms", "%.0f", slowest.Seconds()*1e3)
	line.Addf("slowest_screen_ms", "%.0f", slowestScreen.Seconds()*1e3)
	line.Addf("emit_wal", "%.0f", r.WALBefore)
	line.Addf("emit_wal_with_type", "%.0f", r.WALAfter)
	line.Addf("seconds", "%.0f", r.Took.Seconds())
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintf(to, "\n%s\n", line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
