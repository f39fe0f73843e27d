package survey

import (
	"slices"
	"testing"
	"time"
)

// A dead event is out of attempts when it has had as many as a relay makes by default, also for who sets no limit: with
// none at all, every dead event would be.
func TestAttemptsHaveADefault(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]int{0: defaultMaxAttempts, 3: 3} {
		s := New(Config{Every: time.Second, MaxAttempts: given})
		at := slices.IndexFunc(s.parts, func(p *part) bool { return p.name == "dead" })
		if args := s.parts[at].args; args[len(args)-1] != want {
			t.Errorf("%d given: the survey asks with %v", given, args[len(args)-1])
		}
	}
}
