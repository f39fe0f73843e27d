package pubsub

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m, goroutines.Linked)) }

func good() *Report {
	report := &Report{Plan: Full()}
	for range report.Plan.Blocks {
		report.Bare = append(report.Bare, Block{Rate: 8500, AtOnce: 256})
		report.Published = append(report.Published, Block{Rate: 8400, AtOnce: 256})
	}
	return report
}

// TestEveryMustCanBeMissed: and each is named.
func TestEveryMustCanBeMissed(t *testing.T) {
	t.Parallel()
	if problems := good().Problems(); len(problems) > 0 {
		t.Fatalf("%q", problems)
	}
	for problem, spoil := range map[string]func(*Report){
		"too little was tested": func(r *Report) { r.Published = r.Published[1:] },
		"50 requests were under way at the same time, and the relay had 256": func(r *Report) {
			for i := range r.Published {
				r.Published[i].AtOnce = 50
			}
		},
		"1660 events in a second are 0.19 of what the round trip allows": func(r *Report) {
			for i := range r.Published {
				r.Published[i].Rate = 1660
			}
		},
	} {
		report := good()
		spoil(report)
		if problems := report.Problems(); len(problems) != 1 || !strings.Contains(problems[0], problem) {
			t.Errorf("want %q, got %q", problem, problems)
		}
	}
}

// A publisher with a bound that nobody set is found.
func TestABoundIsFound(t *testing.T) {
	t.Parallel()
	// Eight of them come within the patience, and never more.
	plan := Plan{
		RoundTrip: 10 * time.Millisecond, InFlight: 64, Patience: 5 * time.Second, Blocks: 1,
		Block: 300 * time.Millisecond,
	}
	plan.Config = googlepubsub.PublisherConfig{MaxOutstandingMessages: 8}
	report, err := Run(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if problems := report.Problems(); len(problems) != 1 || !strings.HasPrefix(problems[0], "8 requests were under way") {
		t.Errorf("got %q", problems)
	}
	var text strings.Builder
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "under_way=8 ") ||
		!strings.Contains(text.String(), "ok=false") {
		t.Errorf("printed %v:\n%s", err, text.String())
	}
}
