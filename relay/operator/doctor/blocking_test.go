package doctor

import (
	"strings"
	"testing"
)

// TestBlockingFixes: a command tries again what may pass, and claims nothing that nobody knows. What died of its
// contract would die again, so there is no text that ends it.
func TestBlockingFixes(t *testing.T) {
	t.Parallel()
	x := &examination{Config: Config{Schema: "billing"}}
	x.reportBlocking([]deadEvent{
		{id: "1", reason: "invalid_payload", err: "total is no number"},
		{id: "2", reason: "max_attempts"},
		{id: "3", reason: "rejected"},
		{id: "4", reason: "crash_suspect"},
		{id: "5"},
	})
	found := x.report.Findings
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	fix := found[0].Fix
	if !strings.HasPrefix(fix, "outboxctl dead redrive 2 3 5 --reason ") || strings.Contains(fix, "repaired") {
		t.Errorf("the fix is %s", fix)
	}
	if found[1].Fix != "" || !strings.Contains(found[1].Advice, "outboxctl skip 1 --reason ... --schema billing") ||
		!strings.Contains(found[1].Problem, "2 dead events") || !strings.Contains(found[1].Problem, "invalid_payload") {
		t.Errorf("%+v", found[1])
	}
}
