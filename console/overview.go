package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// oneOutbox is a line of the list of outboxes.
type oneOutbox struct {
	Name   string
	Health operator.Health
	Says   string
}

// outboxes lists them; where there is one it goes there at once.
func (q *request) outboxes() error {
	var all []oneOutbox
	var reads []func() error
	ctx, cancel := context.WithTimeout(q.Context(), patienceOfList)
	defer cancel()
	for _, s := range q.console.outboxes {
		if !q.user.MaySee(s.Name) {
			continue
		}
		at := len(all)
		all = append(all, oneOutbox{Name: s.Name, Says: "Your events are under Events."})
		if len(q.user.Tenants) > 0 {
			continue
		}
		reads = append(reads, func() error {
			status, err := s.statusNow(ctx)
			if err != nil {
				q.console.log.WarnContext(ctx, "console: no status", "outbox", s.Name, "error", err)
				all[at].Says = "Its database does not answer."
				return nil
			}
			all[at].Health, all[at].Says = status.Health, sentence(status)
			return nil
		})
	}
	if err := sideBySide(reads...); err != nil {
		return err
	}
	if len(all) == 1 {
		http.Redirect(q.w, q.Request, q.console.pathTo(all[0].Name, q.firstPage()), http.StatusSeeOther)
		return nil
	}
	return q.ok("outboxes", "Outboxes", 10, all)
}

// patienceOfList is for how long the list waits for one of its outboxes: the others are there.
const patienceOfList = 3 * time.Second

func (s *served) statusNow(ctx context.Context) (*operator.Status, error) {
	return s.status.get(ctx, "", s.op.Status)
}

// sentence says in one how an outbox does.
func sentence(status *operator.Status) string {
	if len(status.Reasons) > 0 {
		return worstFirst(status.Reasons)[0].Text
	}
	if status.Ready.Events == 0 {
		return "Nothing waits."
	}
	return fmt.Sprintf("%s events are on their way, the oldest for %s.", many(status.Ready), age(status.Ready.Oldest))
}

// worstFirst puts before the others what an outbox is broken by.
func worstFirst(reasons []operator.Reason) []operator.Reason {
	reasons = slices.Clone(reasons) // others may read them now
	rank := func(r operator.Reason) int { return map[operator.Health]int{operator.Broken: -1}[r.Health] }
	slices.SortStableFunc(reasons, func(a, b operator.Reason) int { return cmp.Compare(rank(a), rank(b)) })
	return reasons
}

// many is a count that nobody has counted to its end.
func many(b operator.Backlog) string {
	if b.AtLeast {
		return number(b.Events) + " or more"
	}
	return number(b.Events)
}

// overview is what the first screen has.
type overview struct {
	Status  *operator.Status
	Reasons []operator.Reason
	Waits   string
	Oldest  float64
	// Rate is of the last minute.
	Rate, Arriving float64
	Drain          string
	Charts         []chart
	Ranges         []chartRange
	Topics         []topicLine
	Each           int
}

type chartRange struct {
	Name, Minutes string
	Here          bool
}

// topicLine is a topic with what it carries.
type topicLine struct {
	operator.Topic
	In, Out, Failed float64 // per second and, of what failed, in all
	Pending         *int64
	Oldest          *float64
}

func (q *request) overview() error {
	minutes, err := q.number("minutes", 60, 5, operator.MaxMinutes)
	if err != nil {
		return err
	}
	var status *operator.Status
	var all []operator.Minute
	var topics []operator.Topic
	ctx, of := q.Context(), q.outbox
	if err := sideBySide(
		func() (err error) { status, err = of.statusNow(ctx); return err },
		func() (err error) {
			all, err = of.series.get(ctx, strconv.FormatInt(minutes, 10), func(ctx context.Context) ([]operator.Minute, error) {
				return of.op.Series(ctx, int(minutes), "")
			})
			return err
		},
		func() (err error) { topics, err = of.topics.get(ctx, "", of.op.Topics); return err },
	); err != nil {
		return err
	}
	points, each := thin(all)
	o := &overview{
		Status: status, Reasons: worstFirst(status.Reasons),
		Topics: topicLines(topics, status.Topics), Charts: chartsOf(points, each), Each: each,
		Waits:  many(sumOf(status.Ready, status.Retrying, status.Waiting, status.Parked)),
		Oldest: max(status.Ready.Oldest, status.Retrying.Oldest, status.Waiting.Oldest, status.Parked.Oldest),
		Ranges: rangesOf(minutes),
	}
	if len(all) > 0 {
		last := all[len(all)-1]
		o.Rate, o.Arriving = float64(last.Published)/60, float64(last.Arrived)/60
	}
	o.Drain = drain(status.Ready, o.Rate, o.Arriving)
	return q.ok("overview", "Overview", 5, o)
}

func sumOf(backlogs ...operator.Backlog) (sum operator.Backlog) {
	for _, b := range backlogs {
		sum.Events += b.Events
		sum.AtLeast = sum.AtLeast || b.AtLeast
	}
	return sum
}

// drain says when a backlog will be gone, if things go on as in the last minute.
func drain(ready operator.Backlog, out, in float64) string {
	switch {
	case ready.Events < 100 || ready.Oldest < 5:
		return ""
	case out <= in || out == 0:
		return "The backlog does not shrink: as much arrives as is published."
	}
	left := time.Duration(float64(ready.Events) / (out - in) * float64(time.Second))
	more := ""
	if ready.AtLeast {
		more = "at least "
	}
	return fmt.Sprintf("At this rate the backlog is gone in %s%s.", more, span.Of(left))
}

func rangesOf(minutes int64) (ranges []chartRange) {
	for _, r := range []struct {
		name    string
		minutes int64
	}{{"1 hour", 60}, {"6 hours", 360}, {"1 day", 1440}, {"3 days", 4320}} {
		ranges = append(ranges, chartRange{r.name, strconv.FormatInt(r.minutes, 10), r.minutes == minutes})
	}
	return ranges
}

// chartsOf are the charts of the overview.
func chartsOf(points []operator.Minute, each int) []chart {
	seconds := float64(each * 60)
	perSecond := func(v float64) string { return rate(v) + "/s" }
	whole := func(v float64) string { return number(int64(v)) }
	late := func(v float64) string { return age(v) }
	within := func(share float64) func(*operator.Minute) float64 {
		return func(m *operator.Minute) float64 {
			bound, _, known := m.Latency(share)
			if !known {
				return math.NaN()
			}
			return bound.Seconds()
		}
	}
	return []chart{
		draw("Events per second", points, perSecond,
			valuesOf("in", points, func(m *operator.Minute) float64 { return float64(m.Arrived) / seconds }),
			valuesOf("out", points, func(m *operator.Minute) float64 { return float64(m.Published) / seconds })),
		draw("Age of the oldest that waits", points, late,
			valuesOf("oldest", points, func(m *operator.Minute) float64 {
				if m.Oldest == nil {
					return math.NaN()
				}
				return *m.Oldest
			})),
		draw("From commit to published, within", points, late,
			valuesOf("p50", points, within(0.5)), valuesOf("p95", points, within(0.95)),
			valuesOf("p99", points, within(0.99))),
		draw("Attempts that failed", points, whole,
			valuesOf("rejected", points, func(m *operator.Minute) float64 { return float64(m.Rejected) }),
			valuesOf("terminal", points, func(m *operator.Minute) float64 { return float64(m.Terminal) }),
			valuesOf("topic", points, func(m *operator.Minute) float64 { return float64(m.TopicFault) }),
			valuesOf("unknown", points, func(m *operator.Minute) float64 { return float64(m.Unknown) })),
	}
}

// topicLines puts the topics beside what they carry, those that need somebody first.
func topicLines(topics []operator.Topic, traffic []operator.Traffic) (lines []topicLine) {
	of := map[string]operator.Traffic{}
	for _, t := range traffic {
		of[t.Topic] = t
	}
	var bad, good []topicLine
	for _, t := range topics {
		line := topicLine{Topic: t}
		if c, ok := of[t.Name]; ok && c.Minutes > 0 {
			seconds := float64(c.Minutes) * 60
			line.In, line.Out, line.Failed = float64(c.Arrived)/seconds, float64(c.Published)/seconds, float64(c.Failed())
			line.Pending, line.Oldest = c.Pending, c.Oldest
		}
		if len(t.Failing) > 0 || len(t.Paused) > 0 || t.Limit != nil {
			bad = append(bad, line)
		} else {
			good = append(good, line)
		}
	}
	return append(bad, good...)
}
