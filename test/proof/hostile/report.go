package hostile

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// The least that must have been tried.
const (
	minInputs   = 400
	minGroup    = 10
	minControls = 100
)

// groups are those of the fault model's list of hostile inputs that concern what exists, and rows that went around
// the checks.
var groups = []string{"bytes", "utf8", "json", "envelope", "identifiers", "broker", "errors", "time", "around"}

// Report is what a run found.
type Report struct {
	inputs     map[string]string // name to group
	tried      int
	endings    map[Ending]int
	unexpected int
	stuck      int
	corrupted  int
	panics     int
	restarts   int
	canaries   int
	unfit      int
	duplicates int
	lines      int
	behind     []time.Duration
	controls   map[Broker]*control
	within     time.Duration // how long a good event may take,
	trips      int           // and how many controls must have come through if it took longer
	late       int
	leftOut    []string
	problems   []string
	seconds    float64
	partial    bool // not the whole list was to be tried
}

func newReport(leftOut []string, plan Plan) *Report {
	return &Report{
		inputs: map[string]string{}, endings: map[Ending]int{}, controls: map[Broker]*control{NATS: {}, PubSub: {}},
		leftOut: leftOut, within: plan.Within, trips: plan.Trips,
	}
}

func (r *Report) failf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// add takes in what became of an input on one broker.
func (r *Report) add(t *trial, v verdict) {
	r.tried++
	r.inputs[t.in.name] = t.in.group
	if v.stuck {
		r.stuck++
	}
	if v.corrupted {
		r.corrupted++
	}
	if v.ending != "" {
		r.endings[v.ending]++
	}
	wants := t.in.want(t.at.broker, t.written)
	switch {
	case v.problem != "":
		r.failf("%s on %s: %s", t.in.name, t.at.broker, v.problem)
	case v.ending != wants.ending || v.reason != wants.reason:
		r.unexpected++
		r.failf("%s on %s: %s %s, must be %s %s", t.in.name, t.at.broker, v.ending, v.reason, wants.ending, wants.reason)
	}
}

// addGood takes in a good event behind a bad one. It is late when it took longer than it may, and that was not the
// machine: controls came through meanwhile, one after the other.
func (r *Report) addGood(behind string, o *outlet, g good, problem string) {
	found, arrived := o.arrivals.of(g.id)
	if problem != "" {
		r.corrupted++
		r.failf("good event behind %s on %s: %s", behind, o.broker, problem)
	}
	took := max(0, found.at.Sub(g.committing))
	if !arrived {
		r.late++
		r.failf("good event behind %s on %s: it has not arrived", behind, o.broker)
		return
	}
	r.behind = append(r.behind, took)
	if took <= r.within {
		return
	}
	if trips := r.controls[o.broker].during(g.committing, found.at); trips >= r.trips {
		r.late++
		r.failf("good event behind %s on %s: it took %s, and %d controls came through meanwhile", behind, o.broker,
			took.Round(time.Millisecond), trips)
	}
}

// took is how long all controls took.
func (r *Report) took() []time.Duration {
	var all []time.Duration
	for _, c := range r.controls {
		all = append(all, c.took()...)
	}
	return all
}

// addWords looks at the columns that hold what somebody else said.
func (r *Report) addWords(o *outlet, found outcome) {
	for column, text := range map[string]string{"last_error": found.lastError, "error_detail": found.detail} {
		if n := leaks(text); n > 0 {
			r.canaries += n
			r.failf("%s: %s of %s leaks: %.200q", o.topic, column, found.id, text)
		}
		if problem := unfit(text); problem != "" {
			r.unfit++
			r.failf("%s: %s of %s: %s: %.200q", o.topic, column, found.id, problem, text)
		}
	}
}

// addLog looks at what the relay logged. A panic counts unless it was planned; where some were, their topic may say so
// too.
func (r *Report) addLog(o *outlet, planned map[string]bool) {
	found := o.logs.read()
	r.lines += found.lines
	r.unfit += len(found.problems)
	if found.canaries > 0 {
		r.canaries += found.canaries
		r.failf("%s: the log has %d canaries", o.topic, found.canaries)
	}
	for _, problem := range found.problems[:min(len(found.problems), 10)] {
		r.failf("%s: %s", o.topic, problem)
	}
	for id := range found.panics {
		if !planned[id] && (id != noEvent || !slices.Contains(slices.Collect(maps.Values(planned)), true)) {
			r.panics++
			r.failf("%s: the publisher panicked on %s", o.topic, id)
		}
	}
}

// sumOK tells whether the fates add up to what was tried.
func (r *Report) sumOK() bool {
	return r.endings[Rejected]+r.endings[Delivered]+r.endings[Dead]+r.endings[Parked] == r.tried
}

// finish adds what only the whole tells.
func (r *Report) finish() {
	if !r.sumOK() {
		r.failf("%v do not add up to %d", r.endings, r.tried)
	}
	if r.canaries > 0 {
		r.failf("%d canaries were found", r.canaries)
	}
	if r.restarts > 0 {
		r.failf("relays ended by themselves %d times", r.restarts)
	}
	if r.partial {
		return
	}
	if len(r.inputs) < minInputs {
		r.failf("%d inputs, want %d", len(r.inputs), minInputs)
	}
	perGroup := map[string]int{}
	for _, group := range r.inputs {
		perGroup[group]++
	}
	for _, group := range groups {
		if perGroup[group] < minGroup {
			r.failf("group %s has %d inputs, want %d", group, perGroup[group], minGroup)
		}
	}
	for _, ending := range []Ending{Rejected, Delivered, Dead, Parked} {
		if r.endings[ending] == 0 {
			r.failf("nothing was %s", ending)
		}
	}
	for _, on := range []Broker{NATS, PubSub} {
		if n := len(r.controls[on].took()); n < minControls {
			r.failf("%d controls on %s, want %d", n, on, minControls)
		}
	}
}

// OK tells whether nothing was missed and enough was tried.
func (r *Report) OK() bool { return len(r.problems) == 0 }

// Problems are what was missed, each in a sentence.
func (r *Report) Problems() []string { return r.problems }

// Print writes what was left out, what was missed and the line of figures.
func (r *Report) Print(to io.Writer) error {
	for _, name := range r.leftOut {
		_, _ = fmt.Fprintln(to, "left out:", name) // the last line tells
	}
	for _, problem := range r.problems[:min(len(r.problems), 100)] {
		_, _ = fmt.Fprintln(to, "MISSED:", problem)
	}
	f := figures.New("proof-hostile")
	f.Addf("inputs", "%d", len(r.inputs))
	f.Addf("groups", "%d", len(slices.Compact(slices.Sorted(maps.Values(r.inputs)))))
	f.Addf("tried", "%d", r.tried)
	for _, ending := range []Ending{Rejected, Delivered, Dead, Parked} {
		f.Addf(string(ending), "%d", r.endings[ending])
	}
	f.Addf("sum_ok", "%t", r.sumOK())
	for _, each := range []struct {
		name string
		n    int
	}{
		{"unexpected", r.unexpected},
		{"panics", r.panics},
		{"restarts", r.restarts},
		{"stuck", r.stuck},
		{"corrupted", r.corrupted},
		{"duplicates", r.duplicates},
		{"canaries", r.canaries},
		{"unfit_texts", r.unfit},
		{"log_lines", r.lines},
		{"good", len(r.behind)},
		{"late", r.late},
	} {
		f.Addf(each.name, "%d", each.n)
	}
	took := r.took()
	f.Addf("controls", "%d", len(took))
	f.Addf("next_good_p50_ms", "%.1f", milliseconds(r.behind, 0.5))
	f.Addf("next_good_max_ms", "%.1f", milliseconds(r.behind, 1))
	f.Addf("control_p50_ms", "%.1f", milliseconds(took, 0.5))
	f.Addf("control_max_ms", "%.1f", milliseconds(took, 1))
	f.Addf("seconds", "%.1f", r.seconds)
	f.Addf("ok", "%t", r.OK())
	if _, err := fmt.Fprintln(to, f); err != nil {
		return fmt.Errorf("hostile: print: %w", err)
	}
	return nil
}

func milliseconds(all []time.Duration, quantile float64) float64 {
	if len(all) == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(all))
	return float64(ordered[int(quantile*float64(len(ordered)-1))].Microseconds()) / 1000
}
