package sim

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func recordingWorld() *World {
	w := &World{now: start}
	w.record = newRecorder(w)
	return w
}

// The first settle was applied and its answer lost, the second was stale for another lane, the third is taken for applied.
func TestWitnessUncertainStaleApplied(t *testing.T) {
	t.Parallel()
	w := recordingWorld()
	l := &life{name: "x"}
	id := outbox.NewID()
	w.record.changed[change{id, core.Dead, w.now}] = true
	for _, result := range []core.Result{core.Uncertain, core.Stale, core.Applied} {
		w.record.witnessed(l, core.Step{Do: core.DidSettle, Event: id, State: core.Dead, Result: result})
		w.now += time.Second
	}
	if len(w.problems) > 0 {
		t.Error(w.problems)
	}
}

// A death that was applied is told as unchanged.
func TestWitnessFalseUnchanged(t *testing.T) {
	t.Parallel()
	w := recordingWorld()
	id := outbox.NewID()
	w.record.changed[change{id, core.Dead, w.now}] = true
	w.record.witnessed(&life{name: "x"}, core.Step{Do: core.DidSettle, Event: id, State: core.Dead, Result: core.Unchanged})
	if len(w.problems) == 0 {
		t.Error("nobody noticed")
	}
}
