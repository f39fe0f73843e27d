package state_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// TestNumbersAndWords: the numbers are in tables and the words in logs and metrics, so none may ever change.
func TestNumbersAndWords(t *testing.T) {
	t.Parallel()
	words := []string{"ready", "retrying", "parked", "waiting", "dead and blocking", "dead", "published", "discarded"}
	named := []state.State{
		state.Ready, state.Retrying, state.Parked, state.Waiting,
		state.DeadBlocking, state.Dead, state.Published, state.Discarded,
	}
	all := state.All()
	if len(all) != len(words) {
		t.Fatalf("there are %d states", len(all))
	}
	for i, s := range all {
		if int(s) != i || s != named[i] || s.String() != words[i] {
			t.Errorf("state %d is %d, %q", i, int(s), s)
		}
	}
	if got := state.State(8).String() + ", " + state.State(-1).String(); got != "state 8, state -1" {
		t.Errorf("unknown ones are %q", got)
	}
}
