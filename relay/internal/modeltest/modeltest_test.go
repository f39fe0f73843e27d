package modeltest

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(patientMain{m}) }

// patientMain waits for goroutines that were told to end: goleak itself looks for half a second, which may be too
// little on a busy machine.
type patientMain struct{ *testing.M }

func (c patientMain) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > time.Minute {
			break // and fail
		}
	}
	return code
}

func open(t *testing.T, url string) *Database {
	t.Helper()
	db, err := Open(t.Context(), url)
	if err != nil {
		t.Fatalf("%v\nIs PostgreSQL running? `make services` starts it.", err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// TestTheStoresAgree is a short form of proof-model, on both servers.
func TestTheStoresAgree(t *testing.T) {
	t.Parallel()
	older := "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"
	if url := os.Getenv("SERVICES_POSTGRES15_URL"); url != "" {
		older = url
	}
	for name, url := range map[string]string{"postgres18": DefaultURL(), "postgres15": older} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := Proof{Sequences: 40, Actions: 60, Seed: 1}.Run(t.Context(), open(t, url))
			if err != nil {
				t.Fatal(err)
			}
			if report.Mismatch != "" {
				t.Error(report.Mismatch)
			}
			for _, missing := range report.TooLittle() {
				t.Error(missing)
			}
			t.Log(report.Line())
		})
	}
}

// TestSeedsThatFailedOnce: what a run with other seeds has found stays found.
func TestSeedsThatFailedOnce(t *testing.T) {
	t.Parallel()
	db := open(t, DefaultURL())
	for seed, found := range map[uint64]string{
		550129958: "a discard of a dead event that was skipped before let go what waited for another reason",
	} {
		report, err := Proof{Sequences: 1, Actions: 60, Seed: seed}.Run(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if report.Mismatch != "" {
			t.Errorf("%s: %s", found, report.Mismatch)
		}
	}
}

// TestASequenceReplays: a seed is all that is needed to see a sequence again.
func TestASequenceReplays(t *testing.T) {
	t.Parallel()
	db := open(t, DefaultURL())
	var lines []string
	for range 2 {
		report, err := Proof{Sequences: 3, Actions: 60, Seed: 7}.Run(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, report.Line())
	}
	if lines[0] != lines[1] {
		t.Errorf("one seed, two runs:\n%s\n%s", lines[0], lines[1])
	}
}

// TestTooLittleIsTold: a report of nothing passes for no proof.
func TestTooLittleIsTold(t *testing.T) {
	t.Parallel()
	report := &Report{Sequences: 500, Actions: 30_000, Planned: 30_000, Kinds: map[string]int{}, Saw: map[string]int{}}
	if got, want := len(report.TooLittle()), len(Kinds())+len(outcomes)+len(changes); got != want {
		t.Errorf("%d complaints, want %d", got, want)
	}
}
