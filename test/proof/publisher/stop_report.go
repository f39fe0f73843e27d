package publisher

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Stop is what came of one.
type Stop struct {
	Name string
	At   time.Time
	Took time.Duration
	// ExitCode is negative when the process had to be killed.
	ExitCode int
	// Kept is how many lanes it had when it was gone, and Given how many it gave back. Gap is the longest time that one
	// of these was nobody's, and Orphaned how many nobody took.
	Kept, Given, Orphaned int
	Gap                   time.Duration
	// Settled is how many events it settled between the signal and its end.
	Settled int
}

// StopReport is what proof-drain-stop found.
type StopReport struct {
	plan    Stops
	Stops   []Stop
	Verdict *check.Verdict
	Drained bool
	// Sent is how many messages publishers sent, and Copies how many of them had been sent before.
	Sent, Copies int
	Seconds      float64
}

// atOnce is the longest that a lane may be nobody's after a stop. A publisher looks for lanes every few seconds, and
// one that waits for a lease to run out takes half a minute.
const atOnce = 15 * time.Second

// busy is how many publishers settled something between the signal and their end.
func (r *StopReport) busy() int {
	n := 0
	for _, s := range r.Stops {
		if s.Given > 0 && s.Settled > 0 {
			n++
		}
	}
	return n
}

// Problems are what was broken and what was tested too little, a sentence each.
func (r *StopReport) Problems() []string {
	var list []string
	is := func(broken bool, format string, args ...any) {
		if broken {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	for _, p := range r.Verdict.Problems() {
		is(true, "%s", p)
	}
	for _, s := range r.Verdict.TooLittle {
		is(true, "%s", s)
	}
	for _, s := range r.Stops {
		is(s.ExitCode != 0, "%s ended with exit code %d", s.Name, s.ExitCode)
		is(s.Took > r.plan.Limit, "%s took %s to stop, at most %s is allowed", s.Name, s.Took.Round(time.Millisecond),
			r.plan.Limit)
		is(s.Kept > 0, "%s kept %d lanes when it was gone", s.Name, s.Kept)
		is(s.Gap > atOnce, "a lane that %s gave back was nobody's for %s", s.Name, s.Gap.Round(time.Millisecond))
		is(s.Orphaned > 0, "%d lanes that %s gave back were taken by nobody", s.Orphaned, s.Name)
	}
	is(!r.Drained, "it did not drain")
	duplicates := r.Verdict.Count(check.Duplicates)
	is(duplicates > 0, "%d events were delivered twice", duplicates)
	is(r.Copies > 0, "%d messages were sent twice, whether or not the broker took them", r.Copies)
	is(len(r.Stops) < r.plan.Rounds, "too little was tested: there were %d stops, at least %d are needed", len(r.Stops),
		r.plan.Rounds)
	is(r.busy() < r.plan.Rounds,
		"too little was tested: %d publishers had something in flight when they were stopped, at least %d are needed",
		r.busy(), r.plan.Rounds)
	is(r.Sent < r.Verdict.Count(check.DeliveredDistinct),
		"too little was tested: %d messages were overheard, and more were delivered", r.Sent)
	return list
}

// Print writes the problems and the last line. It tells whether there were none.
func (r *StopReport) Print(to io.Writer) (ok bool, err error) {
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	var took, gaps []time.Duration
	settled, failed, kept := 0, 0, 0
	for _, s := range r.Stops {
		took, gaps = append(took, s.Took), append(gaps, s.Gap)
		settled, kept = settled+s.Settled, kept+s.Kept
		if s.ExitCode != 0 {
			failed++
		}
	}
	line := figures.New("proof-drain-stop")
	line.Addf("rounds", "%d", len(r.Stops))
	line.Addf("events", "%d", r.Verdict.Count(check.Committed))
	line.Addf("stop_p50_ms", "%d", middle(took).Milliseconds())
	line.Addf("stop_max_ms", "%d", longest(took).Milliseconds())
	line.Addf("limit_ms", "%d", r.plan.Limit.Milliseconds())
	line.Addf("settled_in_drain", "%d", settled)
	line.Addf("gap_p50_ms", "%d", middle(gaps).Milliseconds())
	line.Addf("gap_max_ms", "%d", longest(gaps).Milliseconds())
	line.Addf("kept_lanes", "%d", kept)
	line.Addf("exit_not_0", "%d", failed)
	line.Addf("sent", "%d", r.Sent)
	line.Addf("copies", "%d", r.Copies)
	line.Addf("duplicates", "%d", r.Verdict.Count(check.Duplicates))
	for _, zero := range check.Zeros() {
		line.Addf(zero.Name, "%d", r.Verdict.Count(zero.Of))
	}
	line.Addf("seconds", "%.0f", r.Seconds)
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("publisher: print: %w", err)
	}
	return len(problems) == 0, nil
}

func middle(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

func longest(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

// serverOf is the host and port of a URL.
func serverOf(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("publisher: the broker's address: %w", err)
	}
	return at.Host, nil
}
