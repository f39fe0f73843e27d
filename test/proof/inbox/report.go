package inbox

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/kit/gotest"
)

// Report is what all scenarios came to.
type Report struct {
	Tallies map[string]*tally // by consumer
	plan    Plan
	tests   *gotest.Results
	began   time.Time
	seconds float64
}

// String is a line about one consumer.
func (v *tally) String() string {
	return fmt.Sprintf("%d events, %d copies, %d kills, %d stops, %d deliveries, %d met, %d skipped, %d delayed; lost "+
		"%d, double %d of %d cut off, dead %d, left %d",
		v.Events, v.Copies, v.kills(), v.Stops, v.Deliveries, v.Concurrent, v.Skipped, v.Delayed, v.Lost, v.Double, v.Between,
		v.Dead, v.Left)
}

// kills is how many processes were killed, at any of these points, or wherever if none is given.
func (v *tally) kills(points ...string) (n int) {
	for point, times := range v.Kills {
		if len(points) == 0 || slices.Contains(points, point) {
			n += times
		}
	}
	return n
}

// tally is that of a consumer in a scenario; one that was not there has done nothing.
func (r *Report) tally(scenario, consumer string) *tally {
	if v, is := r.Tallies[scenario+"-"+consumer]; is {
		return v
	}
	return &tally{}
}

// problems are what is not as it must be in a scenario.
func (r *Report) problems(scenario string) (list []string) {
	failf := func(consumer, format string, args ...any) {
		list = append(list, fmt.Sprintf("%s-%s: %s", scenario, consumer, fmt.Sprintf(format, args...)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tallies)) {
		if consumer, is := strings.CutPrefix(name, scenario+"-"); is {
			r.Tallies[name].mustBeZero(consumer == "marked", func(format string, args ...any) {
				failf(consumer, format, args...)
			})
		}
	}
	more := map[string]func(fail){
		theKilling: r.mustOfKilling, theOneCall: r.mustOfOneCall, theStandstill: r.mustOfStandstill,
		theForgetting: r.mustOfForgetting, theSlow: r.mustOfSlow, theHopeless: r.mustOfHopeless,
	}[scenario]
	more(failf)
	return list
}

type fail func(consumer, format string, args ...any)

// mustBeZero is what no scenario may show, except that the one-call form loses.
func (v *tally) mustBeZero(loses bool, failf func(format string, args ...any)) {
	type figure struct {
		name string
		n    int
	}
	zeros := []figure{
		{"phantom", v.Phantom},
		{"unexplained", v.Unexplained},
		{"unguarded", v.Unguarded},
		{"wrongly_dead", v.WronglyDead},
		{"not_dead", v.NotDead},
		{"left", v.Left},
	}
	if !loses {
		zeros = append(zeros, figure{"lost", v.Lost}, figure{"acknowledged_early", v.Early})
	}
	for _, zero := range zeros {
		if zero.n != 0 {
			failf("%s is %d", zero.name, zero.n)
		}
	}
	if v.Double > v.Between+v.Lapsed {
		failf("%d effects are double, and %d were cut off from their marks", v.Double, v.Between+v.Lapsed)
	}
	if !loses {
		for _, note := range v.Notes {
			failf("%s", note)
		}
	}
}

// mustOfKilling: 0 and 0 with PostgreSQL; with Redis nothing lost. And every point must have been died at, and copies
// have met.
func (r *Report) mustOfKilling(failf fail) {
	for consumer, points := range map[string][]string{"postgres": postgresPoints, "redis": redisPoints} {
		v := r.tally(theKilling, consumer)
		for _, point := range append([]string{""}, points...) {
			if v.Kills[point] < r.plan.LeastKills {
				failf(consumer, "too little was tested: %d kills at %q, at least %d are needed", v.Kills[point], point,
					r.plan.LeastKills)
			}
		}
		if v.Events < r.plan.Events || v.Copies*10 < v.Events || v.Concurrent < r.plan.LeastMeeting || v.Skipped == 0 ||
			v.Dead == 0 {
			failf(consumer, "too little was tested: %s", v)
		}
	}
	if redis := r.tally(theKilling, "redis"); redis.Double == 0 {
		failf("redis", "no effect is double: the window between effect and mark was not hit")
	}
}

// mustOfOneCall: the one-call form loses what it is killed with, and the guard does not.
func (r *Report) mustOfOneCall(failf fail) {
	v := r.tally(theOneCall, "marked")
	if v.Lost != v.Kills["check.after"] || v.Lost*2 < r.plan.Lost || v.Double > 0 {
		failf("marked", "%d events are lost and %d double after %d kills between mark and effect", v.Lost, v.Double,
			v.Kills["check.after"])
	}
	if v := r.tally(theOneCall, "guarded"); v.Kills["hold.after"]*2 < r.plan.Lost {
		failf("guarded", "too little was tested: %d kills", v.Kills["hold.after"])
	}
}

func (r *Report) mustOfStandstill(failf fail) {
	if v := r.tally(theStandstill, "redis"); v.Stops == 0 || v.Double == 0 {
		failf("redis", "too little was tested: no hold has ended before its handler")
	}
	if v := r.tally(theStandstill, "postgres"); v.Stops == 0 {
		failf("postgres", "too little was tested: nobody stood still")
	}
}

func (r *Report) mustOfForgetting(failf fail) {
	if v := r.tally(theForgetting, "redis"); v.Delayed == 0 || v.Double == 0 {
		failf("redis", "too little was tested: %d deliveries were delayed while Redis was away, and %d effects are double "+
			"because it forgot", v.Delayed, v.Double)
	}
	if v := r.tally(theForgetting, "postgres"); v.Skipped == 0 {
		failf("postgres", "too little was tested: no copy was skipped")
	}
}

func (r *Report) mustOfSlow(failf fail) {
	for _, consumer := range []string{"postgres", "redis"} {
		v := r.tally(theSlow, consumer)
		if v.Again > v.Failed || v.Concurrent > 0 || v.Double > 0 {
			failf(consumer, "%d of %d slow events came again while they were handled", max(v.Again-v.Failed, v.Concurrent),
				v.Events)
		}
		if v.Events < r.plan.Slow {
			failf(consumer, "too little was tested: %d slow events", v.Events)
		}
	}
}

func (r *Report) mustOfHopeless(failf fail) {
	for _, consumer := range []string{"postgres", "redis"} {
		if v := r.tally(theHopeless, consumer); v.Dead != 5 {
			failf(consumer, "%d dead letters, want 5", v.Dead)
		}
	}
}

// shown tells which faults are shown, and what stands against the others.
func (r *Report) shown() (shown []string, problems []string) {
	broken := map[string]bool{}
	for _, scenario := range r.plan.Scenarios {
		found := r.problems(scenario)
		broken[scenario] = len(found) > 0
		problems = append(problems, found...)
	}
	for _, f := range faults {
		good := true
		for _, scenario := range f.scenarios {
			good = good && slices.Contains(r.plan.Scenarios, scenario) && !broken[scenario]
		}
		for _, test := range f.tests {
			if !r.plan.Tests {
				good = false
			} else if outcome := r.outcome(test); outcome != "pass" {
				good = false
				problems = append(problems, fmt.Sprintf("%s: %s did not pass, but %q: %s", f.id, test, outcome,
					r.tests.Outputs[lastPart(test)]))
			}
		}
		if good {
			shown = append(shown, f.id)
		}
	}
	return shown, problems
}

func lastPart(test string) string { return test[strings.LastIndexByte(test, '/')+1:] }

// OK tells whether nothing is broken and enough was tested.
func (r *Report) OK() bool {
	shown, problems := r.shown()
	return len(problems) == 0 && (len(shown) == len(faults) || !r.plan.whole())
}

// whole tells whether all was to be played.
func (p *Plan) whole() bool { return p.Tests && len(p.Scenarios) == len(Scenarios()) }

// Print writes the faults, the problems and then the line of figures.
func (r *Report) Print(to io.Writer) error {
	shown, problems := r.shown()
	for _, f := range faults {
		where := strings.Join(append(slices.Clone(f.scenarios), f.tests...), " ")
		if !slices.Contains(shown, f.id) {
			where = "NOT SHOWN: " + where
		}
		_, _ = fmt.Fprintf(to, "%-4s %-48s %s\n", f.id, f.what, where) // the last line tells
	}
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "MISSED:", problem)
	}
	if _, err := fmt.Fprintln(to, r.line(len(shown))); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// The kills by what was done by then, in either form.
var (
	afterCheck  = []string{"first.after", "hold.after"}
	afterEffect = []string{"effect.after"}
	beforeMark  = []string{"emit.before_commit", "mark.before"}
	beforeAck   = []string{"emit.after_commit", "mark.after"}
)

func (r *Report) line(shown int) *figures.Line {
	postgres, redis := r.tally(theKilling, "postgres"), r.tally(theKilling, "redis")
	both := func(points ...string) int { return postgres.kills(points...) + redis.kills(points...) }
	f := figures.New("proof-inbox")
	add := func(name string, n int) { f.Addf(name, "%d", n) }
	add("events", postgres.Events)
	add("duplicates", postgres.Copies)
	add("concurrent", min(postgres.Concurrent, redis.Concurrent))
	add("kills", both())
	add("kills_after_check", both(afterCheck...))
	add("kills_after_effect", both(afterEffect...))
	add("kills_before_mark", both(beforeMark...))
	add("kills_before_ack", both(beforeAck...))
	add("kills_anywhere", both(""))
	add("pg_double", postgres.Double)
	add("pg_lost", postgres.Lost)
	add("redis_lost", redis.Lost)
	add("redis_double", redis.Double)
	add("redis_kills_between", redis.Between)
	add("redis_lapsed", redis.Lapsed)
	add("early_acks", postgres.Early+redis.Early)
	add("onecall_kills", r.tally(theOneCall, "marked").Kills["check.after"])
	add("onecall_lost", r.tally(theOneCall, "marked").Lost)
	add("guarded_lost", r.tally(theOneCall, "guarded").Lost)
	add("still_pg_double", r.tally(theStandstill, "postgres").Double)
	add("still_redis_double", r.tally(theStandstill, "redis").Double)
	add("still_lost", r.tally(theStandstill, "postgres").Lost+r.tally(theStandstill, "redis").Lost)
	add("forgot_pg_double", r.tally(theForgetting, "postgres").Double)
	add("forgot_redis_double", r.tally(theForgetting, "redis").Double)
	add("forgot_lost", r.tally(theForgetting, "postgres").Lost+r.tally(theForgetting, "redis").Lost)
	add("slow", r.tally(theSlow, "postgres").Events+r.tally(theSlow, "redis").Events)
	add("slow_again", r.tally(theSlow, "postgres").Again+r.tally(theSlow, "redis").Again)
	add("hopeless_dead", r.tally(theHopeless, "postgres").Dead+r.tally(theHopeless, "redis").Dead)
	add("faults", len(faults))
	add("shown", shown)
	f.Addf("seconds", "%.0f", r.seconds)
	f.Addf("ok", "%t", r.OK())
	return f
}
