package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/retention"
)

// TestTheRatioDecidesInTheFullForm: the median of the pairs, however far one of them is off.
func TestTheRatioDecidesInTheFullForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with   []int // the p99 in milliseconds; without retention it is 10
		rate   float64
		missed bool
	}{
		"no difference":   {[]int{10, 10, 10, 10, 10}, 1000, false},
		"two bad minutes": {[]int{10, 90, 15, 90, 15}, 1000, false},
		"slower":          {[]int{16, 16, 10, 16, 10}, 1000, true},
		"too little load": {[]int{10, 10, 10, 10, 10}, 949, true},
	} {
		for form, plan := range map[string]retention.Plan{"long": retention.Long(), "short": retention.Short()} {
			report := retention.NewReport(plan)
			for pair, millis := range c.with {
				for _, with := range []bool{true, false} {
					p99 := 10 * time.Millisecond
					if with {
						p99 = time.Duration(millis) * time.Millisecond
					}
					report.Stretches = append(report.Stretches, retention.Stretch{Pair: pair, With: with, P99: p99, Offered: c.rate})
				}
			}
			problems := strings.Join(report.Problems(), "\n")
			if got := strings.Contains(problems, "times as long") || strings.Contains(problems, "events/s"); got != (c.missed && form == "long") {
				t.Errorf("%s, %s: %s", name, form, problems)
			}
		}
	}
}
