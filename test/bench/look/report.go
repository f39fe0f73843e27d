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
	Took                time.Duration
}

// Problems lists the musts that were missed.
func (r *Report) Problems() (problems []string) {
	if len(r.Commands) != len(commands) || r.WALBefore <= 0 || r.WALAfter <= r.WALBefore {
		problems = append(problems, "too little was tested")
	}
	for _, found := range r.Commands {
		if r.Plan.Timed && found.Time > mostTime {
			problems = append(problems, fmt.Sprintf("%s took %s, at most %s", found.name, found.Time, mostTime))
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
	return problems
}

// Print writes the table, the musts that were missed, and the line of figures.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("command", "time", "worst", "in the database", "pages", "outboxctl")
	line := figures.New("bench-look")
	line.Addf("events", "%d", r.Plan.Events)
	slowest := time.Duration(0)
	for _, found := range r.Commands {
		table.Add(found.name, milliseconds(found.Time), milliseconds(found.Worst), milliseconds(found.Database),
			fmt.Sprint(found.Pages), strings.Join(found.args, " "))
		slowest = max(slowest, found.Time)
		if found.lookup {
			line.Addf(found.name+"_ms", "%.1f", found.Database.Seconds()*1e3)
		}
		line.Addf(found.name+"_pages", "%d", found.Pages)
	}
	if err := table.Print(to, "What it takes to look"); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // the last line tells
	}
	line.Addf("slowest_ms", "%.0f", slowest.Seconds()*1e3)
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
