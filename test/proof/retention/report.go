package retention

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
	"github.com/posthaste-dev/posthaste/test/bench/steady"
)

// A Stretch is one of a pair.
type Stretch struct {
	steady.Stretch

	Pair int
	With bool // retention worked
}

// Report is what a proof came to.
type Report struct {
	plan      Plan
	left      left
	Stretches []Stretch
	// What retention says that it did.
	Removed    int64
	Batches    int
	Slowest    time.Duration
	Rejections int
	Busy       time.Duration // how long it was at work
	// Blocked is how often somebody was seen to wait for a lock of retention's, in so many looks.
	Blocked, Looks int
	// What became of the live events.
	Committed, Lost, Order int
	// Warnings is how many lines the relay logged.
	Warnings int
	Seconds  float64
}

// NewReport begins a report about this plan.
func NewReport(plan Plan) *Report { return &Report{plan: plan} }

// pairs is how many pairs were measured.
func (r *Report) pairs() int { return len(r.Stretches) / 2 }

// Pairs is the p99 with and without retention of each pair that counts, in milliseconds.
func (r *Report) Pairs() (with, without []float64) {
	for pair := range r.pairs() {
		if a, b := r.Stretches[2*pair], r.Stretches[2*pair+1]; r.held(a) && r.held(b) {
			if b.With {
				a, b = b, a
			}
			with = append(with, float64(a.P99)/float64(time.Millisecond))
			without = append(without, float64(b.P99)/float64(time.Millisecond))
		}
	}
	return with, without
}

// held tells whether the load was what it should be. Where times decide, a pair without it does not count: who asks
// for less waits less.
func (r *Report) held(s Stretch) bool {
	return r.plan.MaxRatio == 0 || s.Offered >= 0.95*float64(r.plan.Rate)
}

// undecided says why the times cannot decide yet; empty: they can.
func (r *Report) undecided() string {
	if r.plan.MaxRatio == 0 {
		return ""
	}
	if with, _ := r.Pairs(); len(with) < r.plan.Pairs {
		return fmt.Sprintf("the load of %d events/s was held in %d pairs of %d only, and %d are needed", r.plan.Rate,
			len(with), r.pairs(), r.plan.Pairs)
	}
	if _, noise := r.Ratio(); noise > r.plan.MaxRatio {
		return fmt.Sprintf(
			"stretches without retention differ from their median by a factor of %.2f: this machine is too busy to tell", noise)
	}
	return ""
}

// Ratio is the median of the pairs' ratios. Noise is how far stretches that are alike lie apart: by what factor those
// without retention differ from their median, in the middle. Like the ratio it forgives two bad minutes of five.
func (r *Report) Ratio() (ratio, noise float64) {
	with, without := r.Pairs()
	usual := median(without)
	var ratios, alike []float64
	for i := range with {
		ratios = append(ratios, with[i]/without[i])
		alike = append(alike, max(without[i], usual)/min(without[i], usual))
	}
	return median(ratios), median(alike)
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	middle := len(list) / 2
	if len(list)%2 == 0 {
		return (list[middle-1] + list[middle]) / 2
	}
	return list[middle]
}

// Problems lists the musts that were missed.
func (r *Report) Problems() []string {
	var problems []string
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	rows := r.pairs() * r.plan.perPair()
	must(r.left.due == 0 && r.Removed == int64(rows), "%d rows were removed and %d are left of %d", r.Removed,
		r.left.due, rows)
	must(r.left.unsettled == unsettled, "%d of %d old events that are not settled are left", r.left.unsettled, unsettled)
	must(r.left.requested == requested, "%d of %d old events that shall be delivered again are left",
		r.left.requested, requested)
	must(r.left.live == r.Committed, "%d of %d young events are left", r.left.live, r.Committed)
	must(r.Rejections == 0, "%d times retention refused", r.Rejections)
	must(r.Lost == 0, "%d events were not delivered", r.Lost)
	must(r.Order == 0, "%d events came before an earlier one of their aggregate", r.Order)
	must(r.left.largest <= r.plan.batch(), "a statement deleted %d rows, and %d is the most", r.left.largest,
		r.plan.batch())
	must(r.Blocked == 0, "%d times somebody waited for a lock of retention's", r.Blocked)
	must(r.Looks > 0, "nobody looked whether somebody waits for retention")
	must(r.left.slowest > 0, "the server has seen no statement that deletes")
	must(r.pairs() >= r.plan.Pairs, "%d pairs of stretches", r.pairs())
	if r.plan.MaxRatio > 0 {
		ratio, _ := r.Ratio()
		must(r.undecided() == "", "%s", r.undecided())
		must(ratio <= r.plan.MaxRatio, "with retention the p99 is %.2f times as long, and %.2f is the most", ratio,
			r.plan.MaxRatio)
		must(r.slowest() <= r.plan.SlowestDelete, "a statement took %s, and %s is the most", r.slowest(),
			r.plan.SlowestDelete)
		must(r.share() >= 0.5, "retention was at work for %.0f %% of its stretches only", 100*r.share())
		must(r.Warnings == 0, "the relay logged %d warnings", r.Warnings)
	}
	return problems
}

// slowest is the longer of what retention and the server measured.
func (r *Report) slowest() time.Duration { return max(r.Slowest, r.left.slowest) }

// share is for how much of its stretches retention was at work.
func (r *Report) share() float64 {
	return r.Busy.Seconds() / (time.Duration(r.pairs()) * r.plan.Length).Seconds()
}

// Print writes a table, what was missed, and the last line.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("pair", "retention", "events/s", "p50", "p99", "longest", "producers late, p99")
	round := func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
	for _, s := range r.Stretches {
		table.Add(fmt.Sprint(s.Pair+1), map[bool]string{true: "at work", false: "-"}[s.With], fmt.Sprintf("%.0f", s.Offered),
			round(s.P50), round(s.P99), round(s.Max), round(s.Late))
	}
	if err := table.Print(to, "From commit to acknowledgement"); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // kept by the last write
	}
	with, without := r.Pairs()
	ratio, noise := r.Ratio()
	line := figures.New("proof-retention")
	line.Addf("removed", "%d", r.Removed)
	line.Addf("left_due", "%d", r.left.due)
	line.Addf("left_unsettled", "%d", r.left.unsettled)
	line.Addf("left_requested", "%d", r.left.requested)
	line.Addf("rate", "%d", r.plan.Rate)
	line.Addf("events", "%d", r.Committed)
	line.Addf("pairs", "%d", r.pairs())
	line.Addf("pairs_counted", "%d", len(with))
	line.Addf("p99_with_ms", "%.2f", median(with))
	line.Addf("p99_without_ms", "%.2f", median(without))
	line.Addf("ratio", "%.2f", ratio)
	line.Addf("noise", "%.2f", noise)
	line.Addf("at_work", "%.2f", r.share())
	line.Addf("batches", "%d", r.Batches)
	line.Addf("largest_batch", "%d", r.left.largest)
	line.Addf("blocked", "%d", r.Blocked)
	line.Addf("slowest_delete_ms", "%.1f", float64(r.slowest())/float64(time.Millisecond))
	line.Addf("lost", "%d", r.Lost)
	line.Addf("order", "%d", r.Order)
	line.Addf("warnings", "%d", r.Warnings)
	line.Addf("seconds", "%.0f", r.Seconds)
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return fmt.Errorf("retention: print: %w", err)
	}
	return nil
}
