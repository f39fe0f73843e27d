package sim

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func recordingSimulation() *Simulation {
	sim := &Simulation{now: start}
	sim.record = newRecorder(sim)
	return sim
}

// The first settle was applied and its answer lost, the second was stale for another lane, the third is taken for
// applied.
func TestWitnessUncertainStaleApplied(t *testing.T) {
	t.Parallel()
	sim := recordingSimulation()
	relay := &relayProcess{name: "x"}
	id := outbox.NewID()
	sim.record.changed[change{id, core.Dead, sim.now}] = true
	for _, result := range []core.Result{core.Uncertain, core.Stale, core.Applied} {
		sim.record.witnessed(relay, core.Step{Do: core.DidSettle, Event: id, State: core.Dead, Result: result})
		sim.now += time.Second
	}
	if len(sim.problems) > 0 {
		t.Error(sim.problems)
	}
}

// A death that was applied is told as unchanged.
func TestWitnessFalseUnchanged(t *testing.T) {
	t.Parallel()
	sim := recordingSimulation()
	id := outbox.NewID()
	sim.record.changed[change{id, core.Dead, sim.now}] = true
	sim.record.witnessed(&relayProcess{name: "x"}, core.Step{
		Do: core.DidSettle, Event: id, State: core.Dead, Result: core.Unchanged,
	})
	if len(sim.problems) == 0 {
		t.Error("nobody noticed")
	}
}
