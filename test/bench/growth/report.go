package growth

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// Found is what a relay did with a state of one size.
type Found struct {
	Name string
	Rows int
	// Opened is after how long all lanes carried events, Through after how long the state was gone through.
	Opened, Through time.Duration
	Failed, Alarms  int64   // calls of the database, and lines that people have to read
	Pages           float64 // of a row
	Bytes           uint64  // of the relay's memory
	Needs           int     // type names that are kept for the lanes
	Waits           []time.Duration
}

// p99 is that of the events that were timed.
func (f *Found) p99() time.Duration {
	if len(f.Waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f.Waits))
	return sorted[(len(sorted)*99)/100]
}

// Pair is a state in both sizes.
type Pair struct {
	Name         string
	LineBytes    float64
	Small, Large Found
}

// ratio is what a row costs in the large size against the small one.
func (p *Pair) ratio() float64 { return p.Large.Pages / p.Small.Pages }

// Report is the outcome of a run.
type Report struct {
	Plan  Plan
	Empty []Found
	Grown []Pair
	Took  time.Duration
}

// longestWait is how long events of other topics may wait: so many times as in the empty outbox, or the longer of two
// such runs.
func (r *Report) longestWait() time.Duration {
	longest := time.Duration(0)
	for i := range r.Empty {
		longest = max(longest, r.Empty[i].p99())
	}
	return mostWait * longest
}

// Problems lists the musts that were missed.
func (r *Report) Problems() (problems []string) {
	if len(r.Empty) != 2 || len(r.Grown) != len(states) {
		return []string{"too little was tested"}
	}
	for i := range r.Grown {
		pair := &r.Grown[i]
		for _, found := range []*Found{&pair.Small, &pair.Large} {
			for _, missed := range r.missed(found, mostBytes+pair.LineBytes*float64(found.Rows)) {
				problems = append(problems, fmt.Sprintf("%s of %d rows: %s", pair.Name, found.Rows, missed))
			}
		}
		if most := mostRatio*pair.Small.Pages + r.Plan.Deeper; !(pair.Large.Pages > 0 && pair.Large.Pages <= most) {
			problems = append(problems, fmt.Sprintf("%s: a row costs %.3g pages with ten times as many rows, at most %.3g",
				pair.Name, pair.Large.Pages, most))
		}
	}
	return problems
}

// missed lists what a relay did too much of, with so many bytes allowed.
func (r *Report) missed(found *Found, bytes float64) (problems []string) {
	atMost := func(format string, value, most any, over bool) {
		if over {
			problems = append(problems, fmt.Sprintf(format+", at most %v", value, most))
		}
	}
	atMost("%v statements failed", found.Failed, 0, found.Failed > 0)
	atMost("%v alarms", found.Alarms, mostAlarms, found.Alarms > mostAlarms)
	atMost("%v type names are kept for the lanes", found.Needs, mostNeeds, found.Needs > mostNeeds)
	atMost("%v bytes of memory", found.Bytes, bytes, float64(found.Bytes) > bytes)
	if r.Plan.Timed {
		wait, longest := found.p99(), r.longestWait()
		atMost("lanes opened after %v", found.Opened, lease, found.Opened > lease)
		atMost("other events waited for %v (p99)", wait, longest, wait > longest)
	}
	return problems
}

// Print writes the table, the musts that were missed, and the line of figures.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("state", "rows", "opened", "through", "pages/row", "memory", "p99 of others", "failed",
		"alarms", "names kept")
	add := func(f *Found) {
		table.Add(f.Name, fmt.Sprint(f.Rows), fmt.Sprintf("%.1f s", f.Opened.Seconds()),
			fmt.Sprintf("%.1f s", f.Through.Seconds()), fmt.Sprintf("%.3f", f.Pages),
			fmt.Sprintf("%.1f MB", float64(f.Bytes)/1e6),
			fmt.Sprintf("%.1f ms", f.p99().Seconds()*1e3), fmt.Sprint(f.Failed), fmt.Sprint(f.Alarms), fmt.Sprint(f.Needs))
	}
	line := figures.New("bench-growth")
	for i := range r.Grown {
		pair := &r.Grown[i]
		add(&pair.Small)
		add(&pair.Large)
		line.Addf(pair.Name+"_rows", "%d", pair.Large.Rows)
		line.Addf(pair.Name+"_pages", "%.3f", pair.Large.Pages)
		line.Addf(pair.Name+"_ratio", "%.3f", pair.ratio())
		line.Addf(pair.Name+"_opened", "%.1f", pair.Large.Opened.Seconds())
		line.Addf(pair.Name+"_mb", "%.0f", float64(pair.Large.Bytes)/1e6)
		line.Addf(pair.Name+"_p99_ms", "%.1f", pair.Large.p99().Seconds()*1e3)
		line.Addf(pair.Name+"_failed", "%d", pair.Small.Failed+pair.Large.Failed)
	}
	for i := range r.Empty {
		add(&r.Empty[i])
		line.Addf(fmt.Sprintf("empty%d_p99_ms", i+1), "%.1f", r.Empty[i].p99().Seconds()*1e3)
	}
	if err := table.Print(to, "What a relay does with an outbox that has grown"); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // the last line tells
	}
	line.Addf("seconds", "%.0f", r.Took.Seconds())
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintf(to, "\n%s\n", line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
