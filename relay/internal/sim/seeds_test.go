package sim

import (
	"slices"
	"testing"
	"time"
)

func TestSeedsOfADay(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	today, later, tomorrow := SeedsOf(day), SeedsOf(day.Add(23*time.Hour)), SeedsOf(day.AddDate(0, 0, 1))
	if len(today) != seedsOfADay || !slices.Equal(today, later) {
		t.Errorf("a day has the seeds from %d, %d of them, and from %d in the evening", today[0], len(today), later[0])
	}
	if tomorrow[0] != today[len(today)-1]+1 {
		t.Errorf("the day's seeds end with %d, the next day's begin with %d", today[len(today)-1], tomorrow[0])
	}
}

// Every form of the proof runs the seeds that failed once, and only one with a day runs the seeds of a day.
func TestSeedsOfAProof(t *testing.T) {
	t.Parallel()
	once := len(FailedOnce())
	short, full := Options{From: 1, Seeds: 10, Short: true}, Options{From: 1, Seeds: 10, Day: time.Unix(0, 0)}
	if got := short.all(); len(got) != once+10 {
		t.Errorf("the short form has %d seeds, %d of which failed once", len(got), once)
	}
	if got := full.all(); len(got) != once+seedsOfADay+10 {
		t.Errorf("the full form has %d seeds, %d of which failed once", len(got), once)
	}
}

// The seeds that failed once pass.
func TestFailedOnce(t *testing.T) {
	t.Parallel()
	for _, seed := range FailedOnce() {
		if result := Run(seed, steps, Mutant{}, nil); !result.Pass() {
			t.Error(result.Explain(steps))
		}
	}
}
