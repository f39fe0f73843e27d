package pubsub

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received)) }

// The proof consumes, breaks connections and counts, here with our emulator, and leaves nothing behind.
func TestWithOurEmulator(t *testing.T) {
	t.Parallel()
	emulator, err := pubsubemulator.Start(pubsubemulator.Config{Dir: t.TempDir(), LongestBackoff: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = emulator.Close() })
	progress := &bytes.Buffer{}
	s, err := newSite(t.Context(), Plan{
		Project: "p", Endpoint: emulator.Addr(), Emulator: true, Chaos: 5 * time.Second, Keys: 5, Pause: time.Second, Seed: 1,
		Progress: progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.admin.Close() })
	report := &Report{SuitePassed: 10} // the suite has a test of its own
	if err := s.consume(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if err := s.chaos(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if report.Left = s.remove(t.Context()); !report.OK() {
		report.Print(progress)
		t.Error(progress)
	}
}

// Whatever is wrong, or too little, the proof fails.
func TestTheReportCanFail(t *testing.T) {
	t.Parallel()
	good := Report{
		SuitePassed: 10, Consumed: 30, DeadLetters: 1, Events: 100, Cuts: 1, Outages: 1, Silences: 1,
	}
	if !good.OK() {
		t.Error("a good report is refused")
	}
	for what, change := range map[string]func(*Report){
		"a case failed":  func(r *Report) { r.SuiteFailed = 1 },
		"few cases":      func(r *Report) { r.SuitePassed = 9 },
		"not handled":    func(r *Report) { r.ConsumeMissing = 1 },
		"no dead letter": func(r *Report) { r.DeadLetters = 0 },
		"first disorder": func(r *Report) { r.ConsumeOrder = 1 },
		"lost":           func(r *Report) { r.Lost = 1 },
		"unobserved":     func(r *Report) { r.Unobserved = 1 },
		"disorder":       func(r *Report) { r.Order = 1 },
		"few events":     func(r *Report) { r.Events = 99 },
		"no cuts":        func(r *Report) { r.Cuts = 0 },
		"no outages":     func(r *Report) { r.Outages = 0 },
		"no silences":    func(r *Report) { r.Silences = 0 },
		"something left": func(r *Report) { r.Left = 1 },
	} {
		bad := good
		change(&bad)
		var printed strings.Builder
		bad.Print(&printed)
		if bad.OK() || !strings.HasSuffix(printed.String(), "ok=false\n") {
			t.Errorf("%s: %s", what, &printed)
		}
	}
	if _, err := Prove(t.Context(), Plan{}); err == nil {
		t.Error("it runs without a project")
	}
}
