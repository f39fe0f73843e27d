package audit_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// TestASequenceBehindItsTable: copied without it, as logical replication does.
func TestASequenceBehindItsTable(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for range 10 {
			e.published(t, "order_created")
		}
		count := func(want audit.Numbers) {
			t.Helper()
			if got, err := audit.Sequence(t.Context(), e.viewer, audit.Config{Schema: e.schema}); err != nil || got != want {
				t.Errorf("got %+v, want %+v (%v)", got, want, err)
			}
		}
		e.exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 3)")
		count(audit.Numbers{Drawn: 3, Behind: 7, Present: 10})
		e.exec(t, "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events) VALUES (12, 20, 9)")
		count(audit.Numbers{Drawn: 3, Behind: 17, Present: 10, Pruned: 9, Unused: 1, Gaps: 1})
		e.exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 20)")
		count(audit.Numbers{Drawn: 20, Present: 10, Pruned: 9, Unused: 1, Gaps: 1})
		// A trillion numbers that nobody has cost two looks.
		e.exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 1000000000000)")
		e.published(t, "order_created")
		count(audit.Numbers{
			Drawn: 1_000_000_000_001, Present: 11, Pruned: 9, Unused: 999_999_999_981, Gaps: 2,
		})
	})
}
