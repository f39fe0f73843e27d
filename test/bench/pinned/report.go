package pinned

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// The musts of a form in which times decide.
const (
	minThird    = 0.95 // the last third's rate, of the first's
	maxP99      = 3    // times that of the unpinned stretch
	maxWriter99 = 300 * time.Millisecond
	minOffered  = 0.9 // of the rate: with less, too little was asked of the relay
)

// Report is what a run found.
type Report struct {
	Plan                      Plan    // as it was on this machine
	Capacity                  float64 // events per second that the machine can move
	Unpinned                  *Phase
	Snapshot, SnapshotControl *Phase
	Writer, WriterControl     *Phase
	Own                       Own
	Day                       *Day
	Took                      time.Duration
}

// flat tells what is wrong with a phase: its rate fell, or its latency is beyond the limit.
func flat(p *Phase, limit time.Duration) []string {
	var problems []string
	if p.Thirds[2] < minThird*p.Thirds[0] {
		problems = append(problems, fmt.Sprintf("%s: %.0f events/s in the last third, %.0f in the first", p.Name, p.Thirds[2],
			p.Thirds[0]))
	}
	if p.P99 > limit {
		problems = append(problems, fmt.Sprintf("%s: p99 is %s, at most %s is allowed", p.Name, p.P99, limit))
	}
	return problems
}

// maxPages is how many pages a read may look at while a pin is held. It must be nearer to what a read looks at without
// a pin than to every dead row, which is what it looks at without the watermark.
func (r *Report) maxPages() float64 { return math.Sqrt(r.Unpinned.ReadPages * float64(r.Plan.Dead)) }

// narrow tells what is wrong with the reads of a phase: they look at what is dead.
func narrow(p *Phase, limit float64) []string {
	if p.ReadPages <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s: a read looks at %.0f pages, at most %.0f are allowed", p.Name, p.ReadPages, limit)}
}

// compare tells what is wrong with a phase under a pin, and with its control, which must show that it would have been
// seen.
func (r *Report) compare(found, control *Phase, under string, limit time.Duration) (problems []string, fails bool) {
	fails = r.Plan.Timed || r.Plan.Dead > 0
	if r.Plan.Timed {
		problems = append(problems, flat(found, limit)...)
		fails = fails && len(flat(control, limit)) > 0
	}
	if r.Plan.Dead > 0 {
		problems = append(problems, narrow(found, r.maxPages())...)
		fails = fails && len(narrow(control, r.maxPages())) > 0
	}
	if !fails {
		problems = append(problems, under+" the run without the watermark passed as well: nothing was shown")
	}
	return problems, fails
}

// sound tells what makes a phase void: lost or reordered events, or too little load.
func sound(p *Phase, plan Plan) []string {
	var problems []string
	if p.Undelivered > 0 {
		problems = append(problems, fmt.Sprintf("%s: %d events were not delivered", p.Name, p.Undelivered))
	}
	if p.Inverted > 0 {
		problems = append(problems, fmt.Sprintf("%s: %d events came before an earlier one of their aggregate", p.Name,
			p.Inverted))
	}
	if p.Counted < minReads {
		problems = append(problems, fmt.Sprintf("%s: too little was tested: %d reads were counted", p.Name, p.Counted))
	}
	if plan.Timed && p.Offered < minOffered*float64(plan.Rate) {
		problems = append(problems, fmt.Sprintf("%s: too little was tested: %.0f events/s were committed, %d were planned",
			p.Name, p.Offered, plan.Rate))
	}
	return problems
}

// limits are the highest p99 under a snapshot and behind a writer.
func (r *Report) limits() (snapshot, writer time.Duration) {
	snapshot = maxP99 * r.Unpinned.P99
	return snapshot, max(snapshot, maxWriter99)
}

func (r *Report) underSnapshot() (problems []string, controlFails bool) {
	limit, _ := r.limits()
	return r.compare(r.Snapshot, r.SnapshotControl, "under a snapshot", limit)
}

func (r *Report) behindWriter() (problems []string, controlFails bool) {
	_, limit := r.limits()
	return r.compare(r.Writer, r.WriterControl, "behind an open writer", limit)
}

// Problems are the musts that were missed, each in a sentence.
func (r *Report) Problems() []string {
	var problems []string
	for _, p := range []*Phase{r.Unpinned, r.Snapshot, r.Writer} {
		problems = append(problems, sound(p, r.Plan)...)
	}
	snapshot, _ := r.underSnapshot()
	writer, _ := r.behindWriter()
	problems = append(append(problems, snapshot...), writer...)
	if !r.Own.InOrder() {
		problems = append(problems, fmt.Sprintf("the open writer's events: %d early, order of arrival %v, want [1 2]",
			r.Own.Early, r.Own.Order))
	}
	return append(problems, r.Day.problems()...)
}

// Print writes the table, the musts that were missed, and the line of figures.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("phase", "events/s committed", "acknowledged, by third", "last/first", "p50", "p99", "max",
		"producers late p99", "first after",
		"reads/s", "read time", "pages/read", "dead tuples", "undelivered", "inverted", "repeated")
	for _, p := range r.phases() {
		table.Add(p.Name, fmt.Sprintf("%.0f", p.Offered),
			fmt.Sprintf("%.0f %.0f %.0f", p.Thirds[0], p.Thirds[1], p.Thirds[2]), fmt.Sprintf("%.3f", p.ratio()),
			short(p.P50), short(p.P99), short(p.Max), short(p.Late), short(p.First), fmt.Sprintf("%.0f", p.Reads),
			short(p.ReadTime), fmt.Sprintf("%.0f", p.ReadPages),
			fmt.Sprint(p.Dead), fmt.Sprint(p.Undelivered), fmt.Sprint(p.Inverted), fmt.Sprint(p.Repeated))
	}
	title := fmt.Sprintf("%d events/s in transactions of %d, %d dead tuples made under every pin", r.Plan.Rate,
		r.Plan.PerTx, r.Plan.Dead)
	if err := table.Print(to, title); err != nil {
		return err
	}
	if err := errors.Join(r.Day.table(to), r.printGoals(to)); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // the last line tells
	}
	if _, err := fmt.Fprintf(to, "\n%s\n", r.figures(len(problems) == 0)); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (r *Report) phases() []*Phase {
	return []*Phase{r.Unpinned, r.Snapshot, r.SnapshotControl, r.Writer, r.WriterControl}
}

func (r *Report) figures(ok bool) *figures.Line {
	f := figures.New("bench-pinned")
	f.Addf("capacity", "%.0f", r.Capacity)
	f.Addf("rate", "%d", r.Plan.Rate)
	f.Addf("seconds_each", "%.0f", r.Plan.Length.Seconds())
	f.Addf("dead_made", "%d", r.Plan.Dead)
	for _, p := range r.phases() {
		f.Addf(p.Name+"_last_first", "%.3f", p.ratio())
		f.Addf(p.Name+"_p50_ms", "%.1f", millis(p.P50))
		f.Addf(p.Name+"_p99_ms", "%.1f", millis(p.P99))
		f.Addf(p.Name+"_pages", "%.0f", p.ReadPages)
	}
	f.Addf("max_pages", "%.0f", r.maxPages())
	f.Addf("snapshot_p99_ratio", "%.2f", r.Snapshot.P99.Seconds()/r.Unpinned.P99.Seconds())
	f.Addf("writer_p99_ratio", "%.2f", r.Writer.P99.Seconds()/r.Unpinned.P99.Seconds())
	_, snapshot := r.underSnapshot()
	_, writer := r.behindWriter()
	f.Addf("snapshot_control_fails", "%t", snapshot)
	f.Addf("writer_control_fails", "%t", writer)
	f.Addf("writer_own_in_order", "%t", r.Own.InOrder())
	f.Addf("writer_own_wait_ms", "%.1f", millis(r.Own.Wait))
	f.Addf("lost", "%d", r.Unpinned.Undelivered+r.Snapshot.Undelivered+r.Writer.Undelivered)
	f.Addf("order", "%d", r.Unpinned.Inverted+r.Snapshot.Inverted+r.Writer.Inverted)
	r.Day.figures(f)
	f.Addf("seconds", "%.0f", r.Took.Seconds())
	f.Addf("ok", "%t", ok)
	return f
}

// ratio is the last third's rate of the first's.
func (p *Phase) ratio() float64 {
	if p.Thirds[0] == 0 {
		return 0
	}
	return p.Thirds[2] / p.Thirds[0]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func short(d time.Duration) string { return fmt.Sprintf("%.1f ms", millis(d)) }
