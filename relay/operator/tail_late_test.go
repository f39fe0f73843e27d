package operator_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestTailShowsWhatCommitsLate: an event that has a lower number and an older id than what was shown, because its
// transaction stayed open.
func TestTailShowsWhatCommitsLate(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		late := outbox.NewID()
		writer, _ := e.begin(insertEvent, late.String(), "late")
		e.event("early", "order_created", state.Ready)
		tail := e.operator.Tail(operator.Filter{})
		for look, want := range []string{"early", "", "late", ""} {
			if look == 2 {
				if err := writer.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			changes, left, err := tail.Next(t.Context(), 10)
			if err != nil || left {
				t.Fatal(err, left)
			}
			got := ""
			for _, change := range changes {
				got += change.AggregateID
			}
			if got != want {
				t.Errorf("look %d shows %q, want %q", look, got, want)
			}
		}
	})
}
