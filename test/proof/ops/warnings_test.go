package ops

import "testing"

// TestWarnings: the pause that the proof orders is expected, and every other warning counts.
func TestWarnings(t *testing.T) {
	t.Parallel()
	log := `level=WARN msg="paused by an operator" scope=topic name=` + canceledTopic + " actor=proof-ops\n" +
		`level=WARN msg="paused by an operator" scope=topic name=` + ordersTopic + " actor=proof-ops\n" +
		`level=WARN msg="a settle came too late" topic=` + canceledTopic + "\n"
	if got := warnings(log); got != 2 {
		t.Errorf("%d warnings, want 2", got)
	}
}
