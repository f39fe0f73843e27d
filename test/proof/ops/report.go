package ops

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// A Stretch is what live events felt for a while.
type Stretch struct {
	Events   int
	Rate     float64 // per second
	P50, P99 time.Duration
}

func (s *Stretch) of(list []time.Duration, length time.Duration) {
	slices.Sort(list)
	sample := bench.Sample{Latencies: list}
	s.Events, s.Rate = len(list), float64(len(list))/length.Seconds()
	s.P50, s.P99 = sample.Latency(0.5), sample.Latency(0.99)
}

// measure takes the live events of the seconds in which a job was at work. While one waits for the lease of a dead
// worker, live events feel nothing of it.
func (s *Stretch) measure(r *run, topic string, behind int) {
	among, seconds := r.broker.busy(topic, behind)
	s.of(r.load.latencies(among), time.Duration(max(seconds, 1))*time.Second)
	r.sayf("in %d seconds of work: %.0f live events/s, p50 %s, p99 %s", seconds, s.Rate, s.P50, s.P99)
}

// Report is what came of it.
type Report struct {
	Control         [2]Stretch
	Redrive, Replay *JobReport
	Verdict         *check.Verdict
	Live            int // live events
	Copies          int // at the second topic
	Mismarked       int // copies that do not say so, or others that do
	// BeforeCancel is how many copies of the canceled replay had come, Canceled how many were taken back, AfterCancel how
	// many came when it was acknowledged.
	BeforeCancel, Canceled, AfterCancel int
	ViewerTried                         int
	ViewerMay                           []string
	Warnings                            int
	Seconds                             float64

	plan Plan
}

// NewReport is for tests of what decides.
func NewReport(plan Plan) *Report { return &Report{plan: plan} }

// Ratio is a figure of a stretch as a multiple of the one before, which is the middle of the two; allowed is the most
// that it may be: so much, or what lies between the two, whichever is larger.
func (r *Report) Ratio(of func(Stretch) time.Duration, with Stretch, most float64) (ratio, allowed float64) {
	a, b := float64(of(r.Control[0])), float64(of(r.Control[1]))
	if a == 0 || b == 0 {
		return 0, most
	}
	return float64(of(with)) / ((a + b) / 2), max(most, max(a, b)/min(a, b))
}

func p50(s Stretch) time.Duration { return s.P50 }
func p99(s Stretch) time.Duration { return s.P99 }

// OK tells whether nothing was missed.
func (r *Report) OK() bool { return len(r.Problems()) == 0 }

// Problems lists the musts that were missed.
func (r *Report) Problems() []string {
	var problems []string
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	orders := r.plan.Dead + r.plan.followers()
	for _, problem := range r.Verdict.Problems() {
		must(false, "%s", problem)
	}
	for _, little := range r.Verdict.TooLittle {
		must(false, "%s", little)
	}
	must(r.Verdict.Count(check.Duplicates) == 0, "%d messages came twice, and no relay was killed",
		r.Verdict.Count(check.Duplicates))
	for _, j := range []struct {
		*JobReport

		events int
	}{{r.Redrive, r.plan.Dead}, {r.Replay, orders}} {
		for _, problem := range j.problems(r.plan, j.events) {
			must(false, "%s: %s", j.Name, problem)
		}
		r.slower(j.JobReport, must)
	}
	must(r.Copies == orders, "%d copies came to the second topic, and %d events were to be sent", r.Copies, orders)
	must(r.Mismarked == 0, "%d messages do not say whether they are copies", r.Mismarked)
	must(r.BeforeCancel > 0 && r.BeforeCancel < orders, "%d of %d copies had come when the replay was canceled",
		r.BeforeCancel, orders)
	must(r.Canceled > 0, "the cancel took nothing back")
	must(r.AfterCancel == 0, "%d copies came after the cancel was acknowledged", r.AfterCancel)
	must(len(r.ViewerMay) == 0, "a viewer may: %s", strings.Join(r.ViewerMay, "; "))
	must(r.ViewerTried == len(forbidden()), "a viewer tried %d things", r.ViewerTried)
	return problems
}

// problems are what is wrong with one job.
func (j *JobReport) problems(plan Plan, events int) (problems []string) {
	must := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	must(j.Job.State == operator.JobDone && j.Job.Done == int64(events) && j.Job.Passed == 0,
		"it is %s with %d done and %d passed, and %d are to be done: %s", j.Job.State, j.Job.Done, j.Job.Passed, events,
		j.Job.Error)
	must(j.Planned == int64(events), "the plan had %d events, and there are %d", j.Planned, events)
	must(j.Kills >= leastKills && len(j.Points) == len(deaths), "its workers were killed %d times, at %v", j.Kills,
		j.Points)
	must(j.Logged == events && j.Twice == 0 && j.Unlogged == 0,
		"the log has %d rows for %d events, %d of them twice, and %d changed events are not in it", j.Logged, events, j.Twice,
		j.Unlogged)
	must(float64(j.Fastest) <= plan.JobRate+float64(plan.part()),
		"%d events were changed within a second at a rate of %.0f", j.Fastest, plan.JobRate)
	must(len(j.Again) == 0, "started again it changed something: %s", strings.Join(j.Again, "; "))
	return problems
}

// slower says what live events have felt of a job, where times decide.
func (r *Report) slower(j *JobReport, must func(ok bool, format string, args ...any)) {
	if !r.plan.TimesDecide {
		return
	}
	must(r.Warnings == 0, "%s: the relays logged %d warnings", j.Name, r.Warnings)
	least := float64(r.plan.Dead) / r.plan.JobRate / 2 * float64(r.plan.LiveRate)
	must(float64(j.Latency.Events) >= least, "%s: %d live events were measured, and %.0f are the least", j.Name,
		j.Latency.Events, least)
	for _, stretch := range []Stretch{r.Control[0], r.Control[1], j.Latency} {
		must(stretch.Rate >= 0.95*float64(r.plan.LiveRate), "%s: %.0f live events/s, and there should be %d", j.Name,
			stretch.Rate, r.plan.LiveRate)
	}
	for name, figure := range map[string]struct {
		of   func(Stretch) time.Duration
		most float64
	}{"median": {p50, maxP50}, "p99": {p99, maxP99}} {
		ratio, allowed := r.Ratio(figure.of, j.Latency, figure.most)
		must(ratio <= allowed, "%s: the %s of live events is %.2f times what it was before, and %.2f is the most", j.Name,
			name, ratio, allowed)
	}
}

// Print writes a table, what was missed, and the last line.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("stretch", "live events", "per second", "p50", "p99")
	round := func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
	add := func(name string, s Stretch) {
		table.Add(name, fmt.Sprint(s.Events), fmt.Sprintf("%.0f", s.Rate), round(s.P50), round(s.P99))
	}
	add("before", r.Control[0])
	add("before, again", r.Control[1])
	add("while redriving", r.Redrive.Latency)
	add("while replaying", r.Replay.Latency)
	if err := table.Print(to, "From commit to broker"); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems[:min(len(problems), 40)] {
		_, _ = fmt.Fprintln(to, "MISSED:", problem) // kept by the last write
	}
	if _, err := fmt.Fprintln(to, r.line(problems)); err != nil {
		return fmt.Errorf("ops: print: %w", err)
	}
	return nil
}

// line is the last line.
func (r *Report) line(problems []string) *figures.Line {
	line := figures.New("proof-ops")
	for _, j := range []*JobReport{r.Redrive, r.Replay} {
		line.Addf(j.Name, "%d", j.Job.Done)
		line.Addf(j.Name+"_rate", "%.0f", float64(j.Job.Done)/j.Took.Seconds())
		line.Addf(j.Name+"_fastest", "%d", j.Fastest)
		line.Addf(j.Name+"_kills", "%d", j.Kills)
		line.Addf(j.Name+"_logged", "%d", j.Logged)
		line.Addf(j.Name+"_unlogged", "%d", j.Unlogged+j.Twice)
		line.Addf(j.Name+"_again", "%d", len(j.Again))
		ratio, allowed := r.Ratio(p50, j.Latency, maxP50)
		line.Addf(j.Name+"_p50", "%.2f", ratio)
		line.Addf(j.Name+"_p50_most", "%.2f", allowed)
		ratio, allowed = r.Ratio(p99, j.Latency, maxP99)
		line.Addf(j.Name+"_p99", "%.2f", ratio)
		line.Addf(j.Name+"_p99_most", "%.2f", allowed)
	}
	line.Addf("live", "%d", r.Live)
	line.Addf("copies", "%d", r.Copies)
	line.Addf("mismarked", "%d", r.Mismarked)
	line.Addf("canceled", "%d", r.Canceled)
	line.Addf("after_cancel", "%d", r.AfterCancel)
	line.Addf("viewer_tried", "%d", r.ViewerTried)
	line.Addf("viewer_may", "%d", len(r.ViewerMay))
	line.Addf("duplicates", "%d", r.Verdict.Count(check.Duplicates))
	for _, zero := range append(check.Zeros(), check.Figure{Name: "unserved", Of: check.RequestsUnserved},
		check.Figure{Name: "copies_out_of_order", Of: check.CopiesOutOfOrder}) {
		line.Addf(zero.Name, "%d", r.Verdict.Count(zero.Of))
	}
	line.Addf("warnings", "%d", r.Warnings)
	line.Addf("seconds", "%.0f", r.Seconds)
	line.Addf("missed", "%d", len(problems))
	line.Addf("ok", "%t", len(problems) == 0)
	return line
}
