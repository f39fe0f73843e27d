package check

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/survey"
)

// TestLimits: a number is bad beyond its limit, and not at it; what must be there at least is bad below.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check Check
		want  State
	}{
		"at the limit":          {Check{Value: 60, Limits: Limits{60, 600}}, OK},
		"above it":              {Check{Value: 61, Limits: Limits{60, 600}}, Warning},
		"at the second":         {Check{Value: 600, Limits: Limits{60, 600}}, Warning},
		"above both":            {Check{Value: 601, Limits: Limits{60, 600}}, Critical},
		"above the second only": {Check{Value: 601, Limits: Limits{None, 600}}, Critical},
		"no limit":              {Check{Value: 1e9, Limits: Limits{None, None}}, OK},
		"nothing, and no limit": {Check{Limits: Limits{None, None}, AtLeast: true}, OK},
		"enough":                {Check{Value: 1, Limits: Limits{1, 1}, AtLeast: true}, OK},
		"fewer than are wanted": {Check{Value: 1, Limits: Limits{2, 1}, AtLeast: true}, Warning},
		"none":                  {Check{Limits: Limits{2, 1}, AtLeast: true}, Critical},
	} {
		if got := c.check.compare().State; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	worst := Result{}.with(Check{State: Critical}).with(Check{State: Unknown}).with(Check{State: OK})
	if worst.State != Critical || len(worst.Checks) != 3 {
		t.Errorf("the worst of them is %s", worst.State)
	}
}

// TestBlockedIsNotWaiting: that something waits behind a dead event is not said, because nobody has looked.
func TestBlockedIsNotWaiting(t *testing.T) {
	t.Parallel()
	for _, check := range fromSurvey(Defaults(), survey.Report{BlockedAggregates: 1}, nil) {
		if check.Name == "blocked" && (check.State != Warning || check.Text != "1 aggregates are blocked by a dead event") {
			t.Errorf("got %+v", check)
		}
	}
}
