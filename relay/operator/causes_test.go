package operator_test

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestCausesOnAStandby: that no relay is alive anywhere is said there as well.
func TestCausesOnAStandby(t *testing.T) {
	t.Parallel()
	for alive, want := range map[int][]operator.CauseCode{
		0: {operator.CauseStandby, operator.CauseNoRelay}, 1: {operator.CauseStandby},
	} {
		if got := operator.CausesOnAStandby(alive); !slices.Equal(got, want) {
			t.Errorf("with %d relays alive: %q, want %q", alive, got, want)
		}
	}
}
