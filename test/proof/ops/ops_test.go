package ops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/proof/ops"
)

// well is a report of a run in which nothing was missed.
func well(plan ops.Plan) *ops.Report {
	orders := plan.Dead + 2*plan.Followers*plan.Aggregates/plan.BlockedEvery
	job := func(name string, events int) *ops.JobReport {
		return &ops.JobReport{
			Name: name, Job: operator.Job{State: operator.JobDone, Done: int64(events)}, Planned: int64(events), Kills: 4,
			Points: []string{"job.before_part", "job.before_commit", "job.after_part"}, Logged: events,
			Fastest: int(plan.JobRate), Took: time.Minute,
			Latency: ops.Stretch{Events: 1_000_000, Rate: float64(plan.LiveRate), P50: 10, P99: 100},
		}
	}
	r := ops.NewReport(plan)
	r.Redrive, r.Replay = job("redrive", plan.Dead), job("replay", orders)
	r.Copies, r.BeforeCancel, r.Canceled = orders, 100, 10
	for i := range r.Control {
		r.Control[i] = ops.Stretch{Events: 1000, Rate: float64(plan.LiveRate), P50: 10, P99: 100}
	}
	r.ViewerTried = ops.Forbidden()
	r.Verdict = check.History{
		{Tx: &check.Tx{Key: "a", Outcome: check.OK, Events: []check.Event{{ID: check.ID{1}, Topic: "orders"}}}},
		{Delivery: &check.Delivery{Index: 1, ID: check.ID{1}, Topic: "orders"}},
		{End: &check.End{Drained: true}},
	}.Check(check.Floor{})
	return r
}

// TestTheReportFindsWhatWasMissed: each must by itself.
func TestTheReportFindsWhatWasMissed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*ops.Report)
		says   string // in both forms; what only times show begins with "long: "
	}{
		"nothing":              {func(*ops.Report) {}, ""},
		"events are left":      {func(r *ops.Report) { r.Redrive.Job.Done-- }, "are to be done"},
		"some were passed":     {func(r *ops.Report) { r.Replay.Job.Passed = 1 }, "1 passed"},
		"the plan is wrong":    {func(r *ops.Report) { r.Replay.Planned++ }, "the plan had"},
		"nobody was killed":    {func(r *ops.Report) { r.Redrive.Kills, r.Redrive.Points = 0, nil }, "were killed 0 times"},
		"a point was not met":  {func(r *ops.Report) { r.Redrive.Points = r.Redrive.Points[1:] }, "4 times, at [job.b"},
		"no row of the log":    {func(r *ops.Report) { r.Redrive.Logged-- }, "the log has"},
		"a row too many":       {func(r *ops.Report) { r.Replay.Twice = 1 }, "1 of them twice"},
		"a row of another":     {func(r *ops.Report) { r.Replay.Unlogged = 1 }, "1 changed events are not in it"},
		"too fast":             {func(r *ops.Report) { r.Redrive.Fastest = 1251 }, "1251 events were changed"},
		"not twice":            {func(r *ops.Report) { r.Redrive.Again = []string{"its log: 2"} }, "its log: 2"},
		"a copy is missing":    {func(r *ops.Report) { r.Copies-- }, "copies came to the second topic"},
		"a copy hides":         {func(r *ops.Report) { r.Mismarked = 1 }, "1 messages do not say"},
		"a copy after all":     {func(r *ops.Report) { r.AfterCancel = 1 }, "1 copies came after the cancel"},
		"nothing to cancel":    {func(r *ops.Report) { r.Canceled = 0 }, "the cancel took nothing back"},
		"canceled too late":    {func(r *ops.Report) { r.BeforeCancel = r.Copies }, "had come when the replay was canceled"},
		"a viewer may":         {func(r *ops.Report) { r.ViewerMay = []string{"all"} }, "a viewer may: all"},
		"a viewer tried less":  {func(r *ops.Report) { r.ViewerTried-- }, "a viewer tried"},
		"live events are slow": {func(r *ops.Report) { r.Redrive.Latency.P50 = 14 }, "long: median of live events is 1.40"},
		"some are slow":        {func(r *ops.Report) { r.Replay.Latency.P99 = 151 }, "long: p99 of live events is 1.51"},
		"as slow as before":    {func(r *ops.Report) { r.Control[1].P99, r.Redrive.Latency.P99 = 200, 299 }, ""},
		"slower than before": {
			func(r *ops.Report) { r.Control[1].P99, r.Redrive.Latency.P99 = 200, 301 }, "long: is 2.01 times",
		},
		"few live events":     {func(r *ops.Report) { r.Replay.Latency.Rate = 400 }, "long: 400 live events/s"},
		"too little measured": {func(r *ops.Report) { r.Replay.Latency.Events = 10 }, "long: 10 live events were measured"},
		"the relays warn":     {func(r *ops.Report) { r.Warnings = 1 }, "long: 1 warnings"},
	} {
		for form, plan := range map[string]ops.Plan{"short": ops.Short(), "long": ops.Long()} {
			report := well(plan)
			if form == "short" && name == "few live events" {
				continue
			}
			c.change(report)
			says, long := strings.CutPrefix(c.says, "long: ")
			problems := strings.Join(report.Problems(), "\n")
			wanted := c.says != "" && (form == "long" || !long)
			if wanted != (problems != "") || wanted && !strings.Contains(problems, says) || report.OK() == wanted {
				t.Errorf("%s, %s: %q, want %q", name, form, problems, c.says)
			}
			var text strings.Builder
			if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "\nproof-ops redrive=") {
				t.Errorf("%s: %v, it prints %s", name, err, text.String())
			}
		}
	}
}
