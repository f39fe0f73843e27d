package sim

import (
	"bytes"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

const steps = 400

func TestSeeds(t *testing.T) {
	t.Parallel()
	var tally Tally
	counts := map[check.Counter]int{}
	for seed := range uint64(50) {
		result := Run(seed+1, steps, Mutant{}, nil)
		if !result.Pass() {
			t.Error(result.Explain(steps))
		}
		if result.Steps < steps {
			t.Errorf("seed %d took %d steps, want %d", seed+1, result.Steps, steps)
		}
		tally.Add(&result.Tally)
		if result.Verdict == nil {
			continue
		}
		for _, c := range check.Counters() {
			counts[c] += result.Verdict.Count(c)
		}
	}
	for f := range Faults {
		if tally[f] == 0 {
			t.Errorf("%s did not happen", f)
		}
	}
	for _, c := range []check.Counter{
		check.Committed, check.DeliveredDistinct, check.Duplicates, check.OrderedAggregates, check.DeadLettered,
	} {
		if counts[c] == 0 {
			t.Errorf("no seed has any %s", c)
		}
	}
}

func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		var first, second bytes.Buffer
		Run(seed+1, steps, Mutant{}, &first)
		Run(seed+1, steps, Mutant{}, &second)
		if first.Len() == 0 {
			t.Fatal("there is no trace")
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			a, b := bytes.Split(first.Bytes(), []byte("\n")), bytes.Split(second.Bytes(), []byte("\n"))
			for i := range min(len(a), len(b)) {
				if !bytes.Equal(a[i], b[i]) {
					t.Fatalf("seed %d differs in line %d:\n%s\n%s", seed+1, i+1, a[i], b[i])
				}
			}
			t.Fatalf("seed %d has traces of %d and %d lines", seed+1, len(a), len(b))
		}
	}
}

func TestOtherSeedOtherTrace(t *testing.T) {
	t.Parallel()
	var first, second bytes.Buffer
	Run(1, steps, Mutant{}, &first)
	Run(2, steps, Mutant{}, &second)
	if bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two seeds have one trace")
	}
}

func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, f := range s.Run(true) {
				if !f.OK {
					t.Errorf("%s is %d", f.Name, f.Value)
				}
			}
		})
	}
}
