package drain

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// What one process wrote must be there for another, without a Close between them: a kill has none.
func TestJournalIsReadByOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	writer, err := OpenJournal(path, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader, err := OpenJournal(path, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ids := []outbox.ID{outbox.NewID(), outbox.NewID(), outbox.NewID()}
	for i, id := range ids {
		if err := writer.Write(int64(i+1), id, 7*i); err != nil {
			t.Fatal(err)
		}
	}
	arrivals := reader.Arrivals(5)
	if len(arrivals) != 3 || arrivals[2].Seq != 3 || arrivals[2].ID != ids[2] || arrivals[2].Account != 14 ||
		arrivals[2].Process != 5 || arrivals[2].At == 0 {
		t.Errorf("%+v", arrivals)
	}
	if err := writer.Write(4, ids[0], 0); err == nil {
		t.Error("a full journal took one more")
	}
	if got := len(reader.Arrivals(0)); got != 3 {
		t.Errorf("%d arrivals in a journal of three", got)
	}
}

func TestAssess(t *testing.T) {
	t.Parallel()
	ids := []outbox.ID{{}, outbox.NewID(), outbox.NewID(), outbox.NewID()}
	expected := map[int64]Expected{1: {ids[1], 1}, 2: {ids[2], 1}, 3: {ids[3], 2}}
	arrival := func(at, seq int64) Arrival {
		return Arrival{At: at, Seq: seq, ID: ids[seq], Account: expected[seq].Account}
	}
	good := []Arrival{arrival(10, 1), arrival(30, 3), arrival(20, 2)}
	for name, test := range map[string]struct {
		arrivals []Arrival
		want     Verdict
	}{
		"all, by time":      {good, Verdict{Events: 3}},
		"lost":              {good[:2], Verdict{Events: 3, Lost: 1}},
		"twice":             {append(slices.Clone(good), arrival(40, 1)), Verdict{Events: 3, Duplicates: 1}},
		"the second before": {append(slices.Clone(good), arrival(5, 2)), Verdict{Events: 3, Duplicates: 1, Disorder: 1}},
		"other id": {
			append(slices.Clone(good), Arrival{At: 50, Seq: 1, ID: ids[2], Account: 1}), Verdict{Events: 3, Strange: 1},
		},
		"other aggregate": {
			append(slices.Clone(good), Arrival{At: 50, Seq: 1, ID: ids[1], Account: 2}), Verdict{Events: 3, Strange: 1},
		},
		"a number that is none of": {append(slices.Clone(good), Arrival{At: 50, Seq: 9}), Verdict{Events: 3, Strange: 1}},
	} {
		if got := Assess(expected, test.arrivals); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
