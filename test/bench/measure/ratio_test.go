package bench_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// at makes a sample of 100 transactions in this many seconds.
func at(round, position int, subject string, seconds float64) bench.Sample {
	return bench.Sample{
		Block:        bench.Block{Subject: subject, Round: round, Position: position},
		Transactions: 100,
		Elapsed:      time.Duration(seconds * float64(time.Second)),
	}
}

func TestTurnsAreAPalindromeThatBeginsElsewhereEachRound(t *testing.T) {
	t.Parallel()
	for round, want := range [][]int{{0, 1, 2, 2, 1, 0}, {1, 2, 0, 0, 2, 1}, {2, 0, 1, 1, 0, 2}, {0, 1, 2, 2, 1, 0}} {
		if got := bench.Turns(3, round); !slices.Equal(got, want) {
			t.Errorf("round %d: %v, want %v", round, got, want)
		}
	}
	if got := bench.Turns(2, 0); !slices.Equal(got, []int{0, 1, 1, 0}) {
		t.Errorf("two subjects: %v, want A B B A", got)
	}
}

func TestRunGivesEverySubjectItsTurns(t *testing.T) {
	t.Parallel()
	var order, prepared []string
	subject := func(name string) bench.Subject {
		return bench.Subject{Name: name, Measure: func(_ context.Context, b bench.Block) (bench.Sample, error) {
			order = append(order, b.Subject)
			return bench.Sample{Transactions: 1, Elapsed: b.Length}, nil
		}}
	}
	run := bench.Interleaver{Rounds: 2, Length: time.Second, BeforeRound: func(context.Context) error {
		prepared = append(prepared, "prepared")
		return nil
	}}
	samples, err := run.Run(t.Context(), []bench.Subject{subject("a"), subject("b")})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if len(prepared) != 2 || len(samples) != run.Blocks(2) {
		t.Errorf("prepared %d times and got %d samples", len(prepared), len(samples))
	}
	if last := samples[7]; last.Subject != "b" || last.Round != 1 || last.Position != 3 || last.Length != time.Second {
		t.Errorf("the last sample is of %+v", last.Block)
	}
}

// A machine that slows down steadily within a round must not show as a difference.
func TestSteadyDriftCancelsOut(t *testing.T) {
	t.Parallel()
	var samples []bench.Sample
	names, cost := []string{"bare", "again", "emit"}, map[string]float64{"bare": 1, "again": 1, "emit": 1.2}
	for round := range 5 {
		for position, subject := range bench.Turns(3, round) {
			sample := at(round, position, names[subject], 1)
			drift := 1 + 0.1*float64(position) + 0.5*float64(round)
			sample.Latencies = []time.Duration{time.Duration(cost[names[subject]] * drift * float64(time.Millisecond))}
			samples = append(samples, sample)
		}
	}
	control, err := bench.Compare(samples, bench.Median, "again", "bare")
	if err != nil {
		t.Fatal(err)
	}
	ratio, err := bench.Compare(samples, bench.Median, "emit", "bare", "again")
	if err != nil {
		t.Fatal(err)
	}
	if !near(control.Median, 1) || control.Resolution() > 1e-6 {
		t.Errorf("control %+v, want 1 without spread", control)
	}
	if !near(ratio.Median, 1.2) || !near(ratio.Min, 1.2) || !near(ratio.Max, 1.2) || ratio.Rounds != 5 {
		t.Errorf("ratio %+v, want 1.2 in five rounds", ratio)
	}
}

// Rounds are compared within themselves: a round on a busy machine weighs as much as a quiet one.
func TestRatiosAreTakenPerRound(t *testing.T) {
	t.Parallel()
	samples := []bench.Sample{
		at(0, 0, "a", 1), at(0, 1, "b", 2),
		at(1, 0, "a", 10), at(1, 1, "b", 20),
		at(2, 0, "a", 1), at(2, 1, "b", 4),
	}
	ratio, err := bench.Compare(samples, bench.Throughput, "b", "a")
	if err != nil {
		t.Fatal(err)
	}
	if !near(ratio.Median, 0.5) || !near(ratio.Min, 0.25) || !near(ratio.Max, 0.5) {
		t.Errorf("%+v, want 0.5 with 0.25..0.5", ratio)
	}
}

func TestCompareNeedsBothSidesOfARound(t *testing.T) {
	t.Parallel()
	for name, samples := range map[string][]bench.Sample{
		"no base":    {at(0, 0, "a", 1), at(0, 1, "b", 1), at(1, 0, "b", 1)},
		"no subject": {at(0, 0, "a", 1), at(0, 1, "b", 1), at(1, 0, "a", 1)},
		"nothing":    {},
		"no latency": {at(0, 0, "a", 1), at(0, 1, "b", 1)},
	} {
		if ratio, err := bench.Compare(samples, bench.Median, "b", "a"); err == nil {
			t.Errorf("%s: compared to %+v", name, ratio)
		}
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	ratio, err := bench.Summarize([]float64{1.3, 0.9, 1.0, 1.1, 1.2})
	if err != nil {
		t.Fatal(err)
	}
	want := bench.Ratio{Median: 1.1, Q1: 1.0, Q3: 1.2, Min: 0.9, Max: 1.3, Rounds: 5}
	if ratio != want {
		t.Errorf("%+v, want %+v", ratio, want)
	}
	if even, _ := bench.Summarize([]float64{1, 2}); !near(even.Median, 1.5) || !near(even.Q1, 1.25) {
		t.Errorf("two rounds: %+v", even)
	}
}

func TestAssess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		goal              *bench.Goal
		ratio, resolution float64
		want              bench.Verdict
	}{
		{bench.AtMost(1.10), 1.05, 0.02, bench.Reached},
		{bench.AtMost(1.10), 1.09, 0.02, bench.Undecided},
		{bench.AtMost(1.10), 1.11, 0.02, bench.Undecided},
		{bench.AtMost(1.10), 1.15, 0.02, bench.Missed},
		{bench.AtLeast(0.88), 0.95, 0.05, bench.Reached},
		{bench.AtLeast(0.88), 0.90, 0.05, bench.Undecided},
		{bench.AtLeast(0.88), 0.80, 0.05, bench.Missed},
		{bench.AtMost(1.8), 1.8, 0, bench.Reached},
		{bench.AtMost(1.8), 1.81, 0, bench.Missed},
		{nil, 3, 0, bench.NoGoal},
	} {
		if got := test.goal.Assess(test.ratio, test.resolution); got != test.want {
			t.Errorf("%v, %.2f at a resolution of %.2f: %q, want %q", test.goal, test.ratio, test.resolution, got, test.want)
		}
	}
}

// The resolution has to tell a biased control from a good one, and not only a scattered one.
func TestResolution(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		control []float64
		want    float64
	}{
		{[]float64{1, 1, 1}, 0},
		{[]float64{0.9, 1, 1.1}, 0.05},
		{[]float64{1.1, 1.1, 1.1}, 0.1},
		{[]float64{0.8, 0.8, 0.8}, 0.2},
	} {
		ratio, err := bench.Summarize(test.control)
		if err != nil {
			t.Fatal(err)
		}
		if got := ratio.Resolution(); !near(got, test.want) {
			t.Errorf("%v: %v, want %v", test.control, got, test.want)
		}
	}
}
