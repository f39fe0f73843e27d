package check_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// report fails the test with all that is needed to see why.
func report(t *testing.T, v *check.Verdict) {
	t.Helper()
	t.Error(v.Line())
	for _, p := range v.Problems() {
		t.Error(p)
	}
	for _, s := range v.TooLittle {
		t.Error(s)
	}
}

func TestValidHistoriesPass(t *testing.T) {
	t.Parallel()
	reached := map[check.Counter]int{}
	for seed := range uint64(300) {
		v := generate(seed, 1+int(seed%17), 60).Check(check.Floor{})
		if !v.Pass() {
			t.Errorf("seed %d", seed)
			report(t, v)
			return
		}
		for _, c := range check.Counters() {
			reached[c] += v.Count(c)
		}
	}
	for _, c := range check.Counters() {
		if !c.MustBeZero() && c != check.Pending && c != check.Torn && c != check.TakenBack && reached[c] == 0 {
			t.Errorf("no generated history has any %s", c)
		}
	}
}

func TestFilesMayComeInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		history := generate(seed, 9, 80)
		want := history.Check(check.Floor{}).Line()
		// One file a kind, the producers' last.
		history[len(history)-1].End.Interleaved = false
		slices.SortStableFunc(history, func(a, b check.Record) int { return rank(a) - rank(b) })
		c := check.New()
		for kind := range 3 {
			var file bytes.Buffer
			w := check.NewWriter(&file)
			for _, r := range history {
				if rank(r) == kind {
					if err := w.Add(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.Read(&file); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Verdict(check.Floor{}).Line(); got != want {
			t.Errorf("seed %d:\n got %s\nwant %s", seed, got, want)
		}
	}
}

func rank(r check.Record) int {
	switch {
	case r.Tx != nil:
		return 2
	case r.Step != nil || r.Fault != nil:
		return 1
	default:
		return 0
	}
}
