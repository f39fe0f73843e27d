package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newStatus says how the outbox does.
func newStatus(root *rootCommand) *cobra.Command {
	return root.show(&cobra.Command{
		Use:   "status",
		Short: "Say how the outbox does, and why",
		Long: `Say how the outbox does: healthy, degraded or broken, with every reason and what to do about it; then how many
events wait and for how long, and what each topic carried in the last five minutes.

Counts go up to 10,000, and ≈ marks what is an estimate. Rates come from outbox_minutes, which relays write that
survey (metrics.survey of outbox-publisher): without them there are none. The exit code says nothing about the health:
for that there is 'outboxctl check'. The viewer role is enough.`,
		Example: "  outboxctl status\n  outboxctl status -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			status, err := op.Status(ctx)
			if err != nil {
				return err
			}
			return p.One(status, func() []string { return statusLines(p, status) })
		})
	})
}

// healthStyles are how each health looks.
var healthStyles = map[operator.Health]present.Style{
	operator.Healthy: present.Good, operator.Degraded: present.Warn, operator.Broken: present.Bad,
}

// statusLines is a status for people.
func statusLines(p *present.Printer, s *operator.Status) []string {
	head := p.Paint(healthStyles[s.Health], strings.ToUpper(string(s.Health)[:1])+string(s.Health)[1:])
	if len(s.Reasons) == 0 {
		held := "hold all lanes"
		if s.Relays == 1 {
			held = "holds all lanes"
		}
		head += fmt.Sprintf(": %s %s, %s ready%s.", plural(int(s.Relays), "relay", "relays"), held, number(s.Ready),
			ageOf(s.Ready, ", the oldest for "))
	} else {
		head += ": " + p.Paint(present.Plain, s.Reasons[0].Text) + "."
	}
	lines := []string{head}
	for i, reason := range s.Reasons {
		if i > 0 {
			lines = append(lines, "  "+p.Paint(healthStyles[reason.Health], "also")+" "+p.Paint(present.Plain, reason.Text))
		}
		lines = append(lines, "       "+p.Paint(present.Faint, reason.Do))
	}
	lines = append(lines, "")
	for _, row := range []struct {
		name, part string
		backlog    operator.Backlog
	}{
		{"ready", "ready", s.Ready},
		{"retrying", "held", s.Retrying},
		{"waiting", "held", s.Waiting},
		{"parked", "held", s.Parked},
		{"dead", "dead", s.Dead},
	} {
		if !s.Knows(row.part) {
			lines = append(lines, fmt.Sprintf("%-9s %8s", row.name, "?"))
			continue
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-9s %8s  %s", row.name, number(row.backlog),
			ageOf(row.backlog, "oldest ")), " "))
	}
	alive := strconv.FormatInt(s.Relays, 10)
	if !s.Knows("fleet") {
		alive = "?"
	}
	lines = append(lines, fmt.Sprintf("%-9s %8s", "relays", alive))
	if len(s.Topics) > 0 {
		lines = append(lines, "")
		lines = append(lines, strings.Split(strings.TrimRight(trafficTable(p, s.Topics), "\n"), "\n")...)
	}
	return lines
}

// trafficTable is what topics carry, per minute.
func trafficTable(p *present.Printer, topics []operator.Traffic) string {
	rate := func(name string, of func(*operator.Traffic) int64) present.Column[operator.Traffic] {
		return present.Column[operator.Traffic]{Name: name, Right: true, Of: func(t operator.Traffic) string {
			return perMinute(of(&t), t.Minutes)
		}}
	}
	failed := rate("FAILED/MIN", (*operator.Traffic).Failed)
	failed.Style = func(t operator.Traffic) present.Style {
		if t.Failed() > 0 {
			return present.Warn
		}
		return present.Plain
	}
	return present.Draw(p, topics,
		present.Column[operator.Traffic]{Name: "TOPIC", Of: func(t operator.Traffic) string { return t.Topic }},
		rate("IN/MIN", func(t *operator.Traffic) int64 { return t.Arrived }),
		rate("OUT/MIN", func(t *operator.Traffic) int64 { return t.Published }), failed,
		rate("DIED/MIN", func(t *operator.Traffic) int64 { return t.Died }),
		latency("P50", 0.5), latency("P99", 0.99),
		present.Column[operator.Traffic]{Name: "PENDING", Right: true, Of: func(t operator.Traffic) string {
			if t.Pending == nil {
				return "?"
			}
			return "≈" + strconv.FormatInt(*t.Pending, 10)
		}},
		present.Column[operator.Traffic]{Name: "OLDEST", Right: true, Of: func(t operator.Traffic) string {
			if t.Pending == nil || *t.Pending == 0 || t.Oldest == nil {
				return ""
			}
			return short(seconds(*t.Oldest))
		}})
}

// latency is a column with a percentile. Only the bucket is known, so it is an upper bound.
func latency(name string, share float64) present.Column[operator.Traffic] {
	return present.Column[operator.Traffic]{Name: name, Right: true, Of: func(t operator.Traffic) string {
		bound, over, known := t.Latency(share)
		switch {
		case !known:
			return ""
		case over:
			return ">" + boundText(bound)
		}
		return "≤" + boundText(bound)
	}}
}

// boundText is a bound without the seconds and minutes that it does not have: 1m, and not 1m0s, but 10s.
func boundText(bound time.Duration) string {
	text := bound.String()
	if bound >= time.Minute && bound%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if bound >= time.Hour && bound%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// perMinute is a rate. Less than one in ten minutes is still not nothing.
func perMinute(events int64, minutes int) string {
	rate := float64(events) / float64(minutes)
	switch {
	case events == 0:
		return "0"
	case rate < 10:
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}

// number is a count, with a mark where there are more.
func number(b operator.Backlog) string {
	if b.AtLeast {
		return "≥" + strconv.FormatInt(b.Events, 10)
	}
	return strconv.FormatInt(b.Events, 10)
}

// ageOf is the age of the oldest, if there is one.
func ageOf(b operator.Backlog, before string) string {
	if b.Events == 0 {
		return ""
	}
	return before + short(seconds(b.Oldest))
}
