package main

import (
	"strings"
	"testing"
)

// TestPruneCountsOneRow: a number and its noun agree.
func TestPruneCountsOneRow(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 2)
		e.exec(t, `UPDATE {schema}.outbox_events SET state = 6, published_at = now() - interval '90 days'
			WHERE seq = (SELECT min(seq) FROM {schema}.outbox_events)`)
		code, out, said := e.call(t, "prune", "--dry-run", "--published", "24h")
		if code != exitDone || !strings.Contains(out, " 1 row, older than ") {
			t.Errorf("exit code %d\n%s%s", code, out, said)
		}
	})
}
