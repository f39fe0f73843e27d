package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/steady"
	"github.com/posthaste-dev/posthaste/test/proof/retention"
)

// TestTheRatioDecidesInTheFullForm: the median of the pairs, however far one of them is off.
func TestTheRatioDecidesInTheFullForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with, without []int // the p99 in milliseconds
		rate          float64
		missed        string
	}{
		"no difference":   {[]int{10, 10, 10, 10, 10}, []int{10, 10, 10, 10, 10}, 1000, ""},
		"two bad minutes": {[]int{10, 90, 15, 90, 15}, []int{10, 10, 10, 10, 10}, 1000, ""},
		"one noisy pair":  {[]int{10, 90, 15, 10, 15}, []int{10, 90, 10, 10, 10}, 1000, ""},
		"slower":          {[]int{16, 16, 10, 16, 10}, []int{10, 10, 10, 10, 10}, 1000, "times as long"},
		"too little load": {
			[]int{10, 10, 10, 10, 10}, []int{10, 10, 10, 10, 10}, 949, "was held in 0 pairs of 5 only, and 5 are needed",
		},
		"too much noise": {[]int{10, 20, 40, 5, 10}, []int{10, 20, 40, 5, 10}, 1000, "too busy to tell"},
		"four pairs": {
			[]int{10, 10, 10, 10}, []int{10, 10, 10, 10}, 1000, "was held in 4 pairs of 4 only, and 5 are needed",
		},
		"more pairs told": {[]int{10, 20, 40, 5, 10, 10, 10}, []int{10, 20, 40, 5, 10, 10, 10}, 1000, ""},
	} {
		for form, plan := range map[string]retention.Plan{"long": retention.Long(), "short": retention.Short()} {
			report := retention.NewReport(plan)
			for pair := range c.with {
				for _, with := range []bool{true, false} {
					p99 := time.Duration(c.without[pair]) * time.Millisecond
					if with {
						p99 = time.Duration(c.with[pair]) * time.Millisecond
					}
					report.Stretches = append(report.Stretches, retention.Stretch{
						Pair: pair, With: with, Stretch: steady.Stretch{P99: p99, Offered: c.rate},
					})
				}
			}
			problems := strings.Join(report.Problems(), "\n")
			decides := strings.Contains(problems, "times as long") || strings.Contains(problems, "was held in") ||
				strings.Contains(problems, "too busy")
			if form == "short" && decides ||
				form == "long" && (decides != (c.missed != "") || !strings.Contains(problems, c.missed)) {
				t.Errorf("%s, %s: %s", name, form, problems)
			}
		}
	}
}
