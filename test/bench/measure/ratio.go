package bench

import (
	"fmt"
	"math"
	"slices"
)

// A Ratio is how two subjects compare, over the rounds of a run.
type Ratio struct {
	Median   float64
	Q1, Q3   float64 // quartiles
	Min, Max float64
	Rounds   int
}

// Compare returns the ratio of a subject to its bases in this metric. A round's ratio is the mean of the
// subject's turns in it over the mean of the bases' turns in it: nothing is compared across rounds. It
// is an error when a round lacks one of them or measured nothing.
func Compare(samples []Sample, metric Metric, subject string, bases ...string) (Ratio, error) {
	type sums struct {
		of, to   float64
		ofN, toN int
	}
	rounds := map[int]*sums{}
	for _, s := range samples {
		in := rounds[s.Round]
		if in == nil {
			in = &sums{}
			rounds[s.Round] = in
		}
		if s.Subject == subject {
			in.of += metric(s)
			in.ofN++
		}
		if slices.Contains(bases, s.Subject) {
			in.to += metric(s)
			in.toN++
		}
	}
	ratios := make([]float64, 0, len(rounds))
	for round, in := range rounds {
		ratio := (in.of / float64(in.ofN)) / (in.to / float64(in.toN))
		if in.ofN == 0 || in.toN == 0 || math.IsNaN(ratio) || math.IsInf(ratio, 0) || ratio <= 0 {
			return Ratio{}, fmt.Errorf("bench: round %d has nothing to compare %s with %v by", round, subject, bases)
		}
		ratios = append(ratios, ratio)
	}
	return Summarize(ratios)
}

// Summarize describes the ratios of single rounds.
func Summarize(ratios []float64) (Ratio, error) {
	if len(ratios) == 0 {
		return Ratio{}, fmt.Errorf("bench: no round to summarize")
	}
	ordered := slices.Sorted(slices.Values(ratios))
	return Ratio{
		Median: quantile(ordered, 0.5), Q1: quantile(ordered, 0.25), Q3: quantile(ordered, 0.75),
		Min: ordered[0], Max: ordered[len(ordered)-1], Rounds: len(ordered),
	}, nil
}

// quantile interpolates between the two nearest values.
func quantile(ordered []float64, q float64) float64 {
	at := q * float64(len(ordered)-1)
	low := int(at)
	if low+1 >= len(ordered) {
		return ordered[len(ordered)-1]
	}
	return ordered[low] + (at-float64(low))*(ordered[low+1]-ordered[low])
}

// Resolution is the smallest difference that a run can see, given the ratio of its A/A control: how far
// the middle half of the rounds strays from 1 when there is no difference at all. Quartiles and not the
// extremes, which only grow with the number of rounds.
func (r Ratio) Resolution() float64 { return max(r.Q3-1, 1-r.Q1, 0) }

// A Goal is a bound on a ratio.
type Goal struct {
	Limit   float64
	AtLeast bool // the ratio must not be below; otherwise it must not be above
}

// AtMost is the goal that a ratio is not above the limit.
func AtMost(limit float64) *Goal { return &Goal{Limit: limit} }

// AtLeast is the goal that a ratio is not below the limit.
func AtLeast(limit float64) *Goal { return &Goal{Limit: limit, AtLeast: true} }

func (g *Goal) String() string {
	switch {
	case g == nil:
		return ""
	case g.AtLeast:
		return fmt.Sprintf(">= %.2f", g.Limit)
	default:
		return fmt.Sprintf("<= %.2f", g.Limit)
	}
}

// A Verdict says what a run found about a goal.
type Verdict string

const (
	// NoGoal is the verdict on a figure that is only reported.
	NoGoal Verdict = ""
	// Reached means that the ratio keeps the goal by more than the run's resolution.
	Reached Verdict = "reached"
	// Missed means that the ratio breaks the goal by more than the run's resolution.
	Missed Verdict = "missed"
	// Undecided means that the goal is closer to the ratio than the run can see.
	Undecided Verdict = "undecided"
)

// Assess compares a ratio with the goal. The resolution is that of the A/A control in the same metric; 0
// for figures that do not vary, such as bytes of WAL.
func (g *Goal) Assess(ratio, resolution float64) Verdict {
	if g == nil {
		return NoGoal
	}
	margin := g.Limit - ratio
	if g.AtLeast {
		margin = -margin
	}
	switch {
	case resolution > 0 && math.Abs(margin) <= resolution:
		return Undecided
	case margin >= 0:
		return Reached
	default:
		return Missed
	}
}
