package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counter names one figure of a verdict. The package comment defines them.
type Counter uint8

// The counters. Those after Malformed must be zero, and Malformed as well.
const (
	Committed Counter = iota
	DeliveredDistinct
	OrderedAggregates
	HeldExplained
	Pending
	DeadLettered
	DiscardedByName
	Redelivered
	TakenBack
	Duplicates
	Torn
	Malformed
	Unresolved
	Lost
	Phantom
	Corrupted
	OrderViolations
	Stuck
	IllegalTransitions
	DeadWithoutLetter
	LetterWithoutDead
	HeldWithoutRow
	RowWithoutHeld
	HeldDiffers
	RequestsUnserved
	CopiesOutOfOrder
	SentAfterCancel
	DuplicatesUnexplained
	DoubleEffects
	EffectsMissing
	ChargedWrongly
	OwnersOverlapping
	StaleSettlesApplied
	counterCount
)

var counterNames = [counterCount]string{
	"committed", "delivered_distinct", "ordered_aggregates", "held_explained", "pending", "dead", "discarded",
	"redelivered", "taken_back", "duplicates", "torn",
	"malformed", "unresolved", "lost", "phantom", "corrupted", "order_violations", "stuck", "illegal_transitions",
	"dead_without_letter", "letter_without_dead", "held_without_row", "row_without_held", "held_differs",
	"requests_unserved", "copies_out_of_order", "sent_after_cancel", "duplicates_unexplained", "double_effects",
	"effects_missing",
	"charged_wrongly", "owners_overlapping", "stale_settles_applied",
}

// String returns the counter's name.
func (c Counter) String() string {
	if c < counterCount {
		return counterNames[c]
	}
	return fmt.Sprintf("counter %d", uint8(c))
}

// MustBeZero tells whether a run with more than none of it has failed.
func (c Counter) MustBeZero() bool { return c >= Malformed && c < counterCount }

// Counters returns all of them, in the order of Line.
func Counters() []Counter {
	all := make([]Counter, counterCount)
	for i := range all {
		all[i] = Counter(i)
	}
	return all
}

// Verdict is what became of a run.
type Verdict struct {
	// Faults counts the injected faults by kind, Points the failpoints that were hit by name.
	Faults map[FaultKind]int
	Points map[string]int
	// TooLittle says in sentences what the run did not test. Empty is enough.
	TooLittle []string

	counts   [counterCount]int
	problems [counterCount][]Problem
}

// Problem is one example of what was broken.
type Problem struct {
	Counter Counter
	ID      ID // zero if it is not about one event
	Detail  string
}

// String returns one line for people.
func (p Problem) String() string {
	if p.ID == (ID{}) {
		return p.Counter.String() + ": " + p.Detail
	}
	return p.Counter.String() + ": event " + p.ID.String() + " " + p.Detail
}

// maxExamples is how many problems of each kind are kept.
const maxExamples = 20

func newVerdict() *Verdict {
	return &Verdict{Faults: map[FaultKind]int{}, Points: map[string]int{}}
}

func (v *Verdict) addf(what Counter, id ID, format string, args ...any) {
	v.counts[what]++
	if len(v.problems[what]) < maxExamples {
		v.problems[what] = append(v.problems[what], Problem{what, id, fmt.Sprintf(format, args...)})
	}
}

// Count returns one figure.
func (v *Verdict) Count(what Counter) int { return v.counts[what] }

// Pass tells whether nothing was broken and enough was tested.
func (v *Verdict) Pass() bool {
	for c := range counterCount {
		if c.MustBeZero() && v.counts[c] != 0 {
			return false
		}
	}
	return len(v.TooLittle) == 0
}

// Problems returns the first examples of everything that must be zero, at most 20 of each kind.
func (v *Verdict) Problems() []Problem {
	var all []Problem
	for c := range counterCount {
		if c.MustBeZero() {
			all = append(all, v.problems[c]...)
		}
	}
	return all
}

// Line returns all figures in one line of name=value.
func (v *Verdict) Line() string {
	var line strings.Builder
	for c := range counterCount {
		fmt.Fprintf(&line, "%s=%d ", c, v.counts[c])
	}
	for _, kind := range slices.Sorted(maps.Keys(v.Faults)) {
		fmt.Fprintf(&line, "fault_%s=%d ", word(string(kind)), v.Faults[kind])
	}
	fmt.Fprintf(&line, "failpoints_hit=%d too_little=%d pass=%t", len(v.Points), len(v.TooLittle), v.Pass())
	return line.String()
}

// word makes a name that cannot break the line's form.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// Verdict ends the history and checks it. The checker cannot be used any more.
func (c *Checker) Verdict(floor Floor) *Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkEvents()
	c.checkOrder()
	c.checkDuplicates()
	c.checkSettles()
	c.checkDeaths()
	c.checkHeld()
	c.checkCharges()
	c.checkLeases()
	c.checkOverlaps()
	c.verdict.TooLittle = floor.short(c.verdict, c.end)
	return c.verdict
}
