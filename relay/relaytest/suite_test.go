package relaytest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

func withoutPipeline(m *memory) relaytest.Harness {
	harness := m.harness()
	harness.Open = m.plain
	harness.Cannot[relaytest.Pipeline] = "a publish.PublisherFunc has no Enqueue"
	return harness
}

func withPipeline(m *memory) relaytest.Harness {
	harness := m.harness()
	harness.Open = m.pipelined
	return harness
}

// patient lets a busy machine take its time: these harnesses run by the wall clock, because a bubble has no subtests.
func patient(harness relaytest.Harness) relaytest.Harness {
	harness.Deadline, harness.Grace, harness.Recovery = time.Minute, time.Minute, time.Minute
	return harness
}

func TestFuncPassesTheSuite(t *testing.T) {
	t.Parallel()
	relaytest.TestPublisher(t, patient(withoutPipeline(newMemory(none))))
}

func TestPipelinerPassesTheSuite(t *testing.T) {
	t.Parallel()
	relaytest.TestPublisher(t, patient(withPipeline(newMemory(none))))
}

// TestMutantsAreFound gives the suite publishers that are wrong in one way each.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	for mutant, want := range finds {
		t.Run(string(mutant), func(t *testing.T) {
			t.Parallel()
			check(t, want, func() (*memory, relaytest.Harness) {
				m := newMemory(mutant)
				harness := withoutPipeline(m)
				if mutant.pipelined() {
					harness = withPipeline(m)
				}
				switch mutant {
				case doneNever, hangsClosed:
					harness.Deadline = time.Second
				case leaks:
					harness.Recovery = 100 * time.Millisecond // the suite looks all the while, which is dear
				default:
				}
				return m, harness
			})
		})
	}
}

// check runs one case in a bubble, where every wait is exactly as long as it says and takes no time.
func check(t *testing.T, want finding, open func() (*memory, relaytest.Harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, harness := open()
		defer close(m.over)
		found := problems(relaytest.Check(t.Context(), harness, want.in))
		if !slices.ContainsFunc(found, func(problem string) bool { return strings.Contains(problem, want.problem) }) {
			t.Errorf("the suite did not say %q, but:\n%s", want.problem, strings.Join(found, "\n"))
		}
	})
}

func problems(results []relaytest.Result) []string {
	var all []string
	for _, result := range results {
		for _, problem := range result.Problems {
			all = append(all, result.Case+": "+problem)
		}
	}
	return all
}

// TestMutantHarnesses gives the suite harnesses that promise what they do not do.
func TestMutantHarnesses(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, string) (func(context.Context) error, error) {
		return func(context.Context) error { return nil }, nil
	}
	for _, mutant := range []struct {
		name   string
		change func(h *relaytest.Harness)
		finds  finding
	}{
		{"no Open", func(h *relaytest.Harness) {
			h.Open = nil
		}, finding{"fidelity", "Open, MakeTopic, RemoveTopic and Arrived must be there"}},
		{"a fault missing", func(h *relaytest.Harness) {
			h.Stop = nil
		}, finding{"fidelity", "without stop, Cannot must say why"}},
		{"no limit", func(h *relaytest.Harness) {
			h.MaxBytes = 0
		}, finding{"fidelity", "without limit, Cannot must say why"}},
		{"a limit too small", func(h *relaytest.Harness) {
			h.MaxBytes = 10
		}, finding{"size limit", "MaxBytes is 10, and the smallest message"}},
		{"no reason", func(h *relaytest.Harness) {
			h.Cannot[relaytest.Order] = ""
		}, finding{"fidelity", "must give a reason for order"}},
		{"no ability", func(h *relaytest.Harness) { h.Cannot["flying"] = "no wings" }, finding{"fidelity", `names "flying"`}},
		{"both", func(h *relaytest.Harness) {
			h.Cannot[relaytest.Slow] = "it is fast"
		}, finding{"fidelity", "it has slow, and Cannot says"}},
		{"a pipeline denied", func(h *relaytest.Harness) {
			h.Cannot[relaytest.Pipeline] = "no"
		}, finding{"pipeline/declared", "is a publish.Pipeliner, and Cannot says that it is not"}},
		{"a pipeline claimed", func(h *relaytest.Harness) {
			h.Open = newMemory(none).plain
		}, finding{"pipeline/declared", "is no publish.Pipeliner; say so"}},
		{"a pipeline nobody can break", func(h *relaytest.Harness) {
			h.Stop, h.RejectMessage = nil, nil
			h.Cannot[relaytest.Stop], h.Cannot[relaytest.RejectMessage] = "no", "no"
		}, finding{"pipeline/declared", "needs RejectMessage or Stop"}},
		{"Stop does nothing", func(h *relaytest.Harness) {
			h.Stop = nothing
		}, finding{"restart under load", "acknowledged while the broker was stopped"}},
		{"Slow does nothing", func(h *relaytest.Harness) { h.Slow = nothing }, finding{"slow", "a deadline that passed"}},
		{"Hang does nothing", func(h *relaytest.Harness) {
			h.Hang = nothing
		}, finding{"given up is not sent later/hanging", "the broker hangs, and Publish returned class published"}},
		{"LoseAck does nothing", func(h *relaytest.Harness) {
			h.LoseAck = nothing
		}, finding{"lost acknowledgement", "an acknowledgement that was lost"}},
		{"LoseAck loses the message", func(h *relaytest.Harness) {
			h.LoseAck = h.Slow
		}, finding{"lost acknowledgement", "LoseAck lost the message"}},
		{"DenyAuth does nothing", func(h *relaytest.Harness) {
			h.DenyAuth = nothing
		}, finding{"denied credentials", "the credentials are denied, yet Publish returned nil"}},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			t.Parallel()
			check(t, mutant.finds, func() (*memory, relaytest.Harness) {
				m := newMemory(none)
				harness := withPipeline(m)
				mutant.change(&harness)
				return m, harness
			})
		})
	}
}

// TestSkipsHaveTheirReason: what a harness cannot do is printed, not passed over.
func TestSkipsHaveTheirReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, skipsHaveTheirReason)
}

func skipsHaveTheirReason(t *testing.T) {
	harness := withoutPipeline(newMemory(none))
	harness.Slow = nil
	harness.Cannot[relaytest.Slow] = "this broker is always fast"
	harness.Cannot[relaytest.Key] = "this broker has no keys"
	results := relaytest.Check(t.Context(), harness)
	if found := problems(results); len(found) > 0 {
		t.Errorf("problems: %s", strings.Join(found, "\n"))
	}
	reasons := map[string]string{}
	for _, result := range results {
		reasons[result.Case] = result.Skipped + strings.Join(result.Notes, "; ")
	}
	for name, want := range map[string]string{
		"slow":           "no slow: this broker is always fast",
		"pipeline/order": "no pipeline: a publish.PublisherFunc has no Enqueue",
		"fidelity":       "without key: this broker has no keys",
	} {
		if reasons[name] != want {
			t.Errorf("case %s: the reason is %q, want %q", name, reasons[name], want)
		}
	}
}

// TestUnusedAbilities: what a harness claims and no case could use is reported.
func TestUnusedAbilities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, unusedAbilities)
}

func unusedAbilities(t *testing.T) {
	harness := withoutPipeline(newMemory(none))
	harness.LoseAck = nil
	harness.Cannot[relaytest.LoseAck] = "nobody loses anything"
	found := problems(relaytest.Check(t.Context(), harness))
	if len(found) != 1 || !strings.Contains(found[0], "dedupe was never put to use") {
		t.Errorf("want one problem, that dedupe was never put to use, got:\n%s", strings.Join(found, "\n"))
	}
}
