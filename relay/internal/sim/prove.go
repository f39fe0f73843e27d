package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Options say how much is to be shown.
type Options struct {
	From    uint64 // the first seed
	Seeds   int
	Day     time.Time // whose seeds are run as well; zero: none, as in a run that must be the same every time
	Steps   int       // of each seed, at least, before its faults end
	Stories bool      // the scenarios as well; without them a proof is no proof
	Short   bool      // smaller scenarios
	// Progress is told how far it is; nil: nobody.
	Progress io.Writer
}

// The least that counts as tested.
const (
	leastStepsOfASeed = 400
	leastOfAFault     = 50
	leastTakesLost    = 25
	leastSeeds        = 5000
	leastSeedsShort   = 300
)

// Report is what a proof found.
type Report struct {
	options  Options
	Seeds    int
	Steps    int
	Tally    Tally
	Deaths   Deaths
	Counts   map[check.Counter]int
	Failed   []Result
	problems int
	canceled int // requests
	limited  int // publishes that kept to a limit
	figures  []Figure

	takesLost int // takes of requests whose answer was lost
}

// Prove runs all scenarios and all seeds, as many at a time as there are processors.
func Prove(ctx context.Context, options Options) *Report {
	p := proof{report: &Report{options: options, Counts: map[check.Counter]int{}}, seeds: options.all(), began: time.Now()}
	if options.Stories {
		p.scenarios = Scenarios()
	}
	p.figures = make([][]Figure, len(p.scenarios))
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for more := true; more && ctx.Err() == nil; {
				more = p.work(int(p.next.Add(1)) - 1) //nolint:contextcheck // nothing in a simulation waits
			}
		})
	}
	group.Wait()
	for _, list := range p.figures {
		p.report.figures = append(p.report.figures, list...)
	}
	slices.SortFunc(p.report.Failed, func(a, b Result) int { return cmp.Compare(a.Seed, b.Seed) })
	return p.report
}

// proof is what the workers share.
type proof struct {
	scenarios []Scenario
	seeds     []uint64
	figures   [][]Figure // of each
	next      atomic.Uint64

	mu           sync.Mutex // guards what follows
	report       *Report
	began, first time.Time // the whole, and the first seed
	printed      time.Time
}

// work does one scenario, the long ones first, or one seed. False: there is nothing left.
func (p *proof) work(job int) bool {
	options := &p.report.options
	if job < len(p.scenarios) {
		p.figures[job] = p.scenarios[job].Run(options.Short)
		p.mu.Lock()
		defer p.mu.Unlock()
		options.progressf("%s is told after %s\n", p.scenarios[job].Name, time.Since(p.began).Round(time.Second))
		return true
	}
	seed := job - len(p.scenarios)
	if seed >= len(p.seeds) {
		return false
	}
	began := time.Now()
	result := Run(p.seeds[seed], options.Steps, Mutant{}, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first.IsZero() {
		p.first, p.printed = began, began
	}
	p.report.add(&result)
	if !result.Pass() {
		options.progressf("%s\n", result.Explain(options.Steps))
	}
	if time.Since(p.printed) > 5*time.Second {
		p.printed = time.Now()
		options.printProgress(p.report, len(p.seeds), p.first)
	}
	return true
}

func (o *Options) progressf(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format, args...)
	}
}

// printProgress writes one line of progress.
func (o *Options) printProgress(r *Report, seeds int, began time.Time) {
	rate := float64(r.Seeds) / time.Since(began).Seconds()
	left := time.Duration(float64(seeds-r.Seeds)/rate) * time.Second
	o.progressf("%d of %d seeds, %.0f seeds/s, %d steps, %d failed, %s left\n", r.Seeds, seeds, rate, r.Steps,
		len(r.Failed), left.Round(time.Second))
}

func (r *Report) add(result *Result) {
	r.Seeds++
	r.Steps += result.Steps
	r.Tally.Add(&result.Tally)
	r.Deaths.Blocked += result.Deaths.Blocked
	r.Deaths.Passed += result.Deaths.Passed
	if result.Verdict != nil {
		for _, c := range check.Counters() {
			r.Counts[c] += result.Verdict.Count(c)
		}
	}
	r.canceled += result.Canceled
	r.limited += result.Limited
	r.takesLost += result.TakesLost
	r.problems += len(result.Problems)
	if !result.Pass() {
		r.Failed = append(r.Failed, *result)
	}
}

// Missed lists in sentences what was not as it must be.
func (r *Report) Missed() []string {
	var missed []string
	for i := range r.Failed {
		missed = append(missed, r.Failed[i].Explain(r.options.Steps))
	}
	for _, f := range r.figures {
		if !f.OK {
			missed = append(missed, fmt.Sprintf("%s is %d", f.Name, f.Value))
		}
	}
	least := leastSeeds
	if r.options.Short {
		least = leastSeedsShort
	}
	if !r.options.Stories {
		missed = append(missed, "too little was tested: the stories were left out")
	}
	if r.options.Day.IsZero() && !r.options.Short {
		missed = append(missed, "too little was tested: the seeds of a day were left out")
	}
	if r.Seeds < least {
		missed = append(missed, fmt.Sprintf("too little was tested: %d seeds, at least %d are needed", r.Seeds, least))
	}
	if r.Steps < least*leastStepsOfASeed || r.options.Steps < leastStepsOfASeed {
		missed = append(missed, fmt.Sprintf("too little was tested: %d steps, at least %d of each seed are needed", r.Steps,
			leastStepsOfASeed))
	}
	for f := range Faults {
		if r.Tally[f] < leastOfAFault {
			missed = append(missed, fmt.Sprintf("too little was tested: %s happened %d times, at least %d are needed", f,
				r.Tally[f], leastOfAFault))
		}
	}
	if least := min(r.Deaths.Blocked, r.Deaths.Passed); least < leastOfAFault {
		missed = append(missed,
			fmt.Sprintf("too little was tested: %d events died and blocked, %d died and were passed, at least %d of each are "+
				"needed",
				r.Deaths.Blocked, r.Deaths.Passed, leastOfAFault))
	}
	if r.Counts[check.Duplicates] == 0 || r.Counts[check.OrderedAggregates] == 0 {
		missed = append(missed, "too little was tested: there were no duplicates, or no order to keep")
	}
	if r.Counts[check.Redelivered] < leastOfAFault || r.canceled < leastOfAFault {
		missed = append(missed, fmt.Sprintf("too little was tested: %d copies, and %d requests that were canceled, at least "+
			"%d of each are needed", r.Counts[check.Redelivered], r.canceled, leastOfAFault))
	}
	if r.limited < leastOfAFault {
		missed = append(missed, fmt.Sprintf("too little was tested: %d publishes to limited topics, at least %d are needed",
			r.limited, leastOfAFault))
	}
	if r.takesLost < leastTakesLost {
		missed = append(missed, fmt.Sprintf("too little was tested: %d takes of requests whose answer was lost, at least %d "+
			"are needed", r.takesLost, leastTakesLost))
	}
	return missed
}

// requestFigures are about events that were delivered again because somebody asked for it.
var requestFigures = []check.Figure{
	{Name: "redelivered", Of: check.Redelivered},
	{Name: "unserved", Of: check.RequestsUnserved},
	{Name: "copies_order", Of: check.CopiesOutOfOrder},
	{Name: "after_cancel", Of: check.SentAfterCancel},
}

// Explain says what is wrong with a seed and how to see it again.
func (r *Result) Explain(steps int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d fails; replay it with: go run ./relay/internal/sim/proof-sim -seed %d -steps %d -v",
		r.Seed, r.Seed, steps)
	lines := slices.Clone(r.Problems)
	if r.Verdict != nil {
		for _, p := range r.Verdict.Problems() {
			lines = append(lines, p.String())
		}
	}
	for i, line := range lines {
		if i == 5 {
			fmt.Fprintf(&text, "\n  and %d more", len(lines)-i)
			break
		}
		fmt.Fprintf(&text, "\n  %s", line)
	}
	return text.String()
}

// Line returns all figures in one line of name=value.
func (r *Report) Line() string {
	var line strings.Builder
	fmt.Fprintf(&line, "proof-sim seeds=%d seeds_failed_once=%d steps=%d", r.Seeds, len(FailedOnce()), r.Steps)
	if day := r.options.Day; !day.IsZero() {
		fmt.Fprintf(&line, " day=%s seeds_of_the_day=%d", day.Format(time.DateOnly), seedsOfADay)
	}
	for _, c := range append([]check.Figure{
		{Name: "committed", Of: check.Committed},
		{Name: "delivered", Of: check.DeliveredDistinct},
		{Name: "dead", Of: check.DeadLettered},
		{Name: "discarded", Of: check.DiscardedByName},
		{Name: "held_explained", Of: check.HeldExplained},
		{Name: "ordered_aggregates", Of: check.OrderedAggregates},
		{Name: "duplicates", Of: check.Duplicates},
	}, check.Zeros()...) {
		fmt.Fprintf(&line, " %s=%d", c.Name, r.Counts[c.Of])
	}
	for _, c := range requestFigures {
		fmt.Fprintf(&line, " %s=%d", c.Name, r.Counts[c.Of])
	}
	fmt.Fprintf(&line, " died_blocking=%d died_passed=%d", r.Deaths.Blocked, r.Deaths.Passed)
	fmt.Fprintf(&line, " canceled=%d limited=%d takes_lost=%d", r.canceled, r.limited, r.takesLost)
	fmt.Fprintf(&line, " problems=%d seeds_failed=%d", r.problems, len(r.Failed))
	for f := range Faults {
		fmt.Fprintf(&line, " fault_%s=%d", f, r.Tally[f])
	}
	for _, f := range r.figures {
		fmt.Fprintf(&line, " %s=%d", f.Name, f.Value)
	}
	fmt.Fprintf(&line, " ok=%t", len(r.Missed()) == 0)
	return line.String()
}
