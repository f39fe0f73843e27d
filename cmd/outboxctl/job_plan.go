package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

const outputOfPlan = "how to print what a dry run counted"

// showPlan says what a job would do, and whether the bound that was named allows it.
func (j *job) showPlan(root *rootCommand, out io.Writer, plan operator.JobPlan) error {
	if !j.dryRun {
		return say(out, "%s", planText(plan))
	}
	p := present.New(root.stdout, root.output, root.colors(root.stdout))
	err := p.One(plan, func() []string {
		var lines []string
		for line := range strings.Lines(planText(plan)) {
			text := strings.TrimLeft(line, " ")
			indent := line[:len(line)-len(text)] // painting takes it away
			lines = append(lines, indent+p.Paint(present.Plain, strings.TrimSuffix(text, "\n")))
		}
		return lines
	})
	if err != nil || !plan.Complete {
		return err
	}
	if plan.Events > operator.DefaultMaxEvents && !j.maxNamed() {
		root.notef("to start it needs --max %d", plan.Events)
	}
	return j.withinMax(plan)
}

// planText is a plan for people.
func planText(plan operator.JobPlan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", plan.Verb, strings.TrimSpace(plan.Filter))
	switch {
	case plan.Events == 0 && plan.Complete:
		text.WriteString("nothing meets this\n")
		return text.String()
	case plan.Complete:
		text.WriteString(events(plan.Events))
	default:
		fmt.Fprintf(&text, "%s counted within %s, about %s in all", events(plan.Events), longestPlan,
			grouped(plan.Estimate))
	}
	if plan.Oldest != nil {
		fmt.Fprintf(&text, ", made from %s to %s", plan.Oldest.Format(time.RFC3339), plan.Newest.Format(time.RFC3339))
	}
	text.WriteString("\n")
	types := make([]string, 0, len(plan.Types))
	for name := range plan.Types {
		types = append(types, name)
	}
	slices.SortFunc(types, func(a, b string) int { return int(plan.Types[b] - plan.Types[a]) })
	for i, name := range types {
		if i == 10 {
			fmt.Fprintf(&text, "  and %d more types\n", len(types)-i)
			break
		}
		fmt.Fprintf(&text, "  %10s  %s\n", grouped(plan.Types[name]), name)
	}
	if plan.Erased > 0 {
		are, those := grouped(plan.Erased)+" are", "them"
		if plan.Erased == 1 {
			are, those = "1 is", "it"
		}
		fmt.Fprintf(&text, "of these %s erased: nothing is left to send, and the job passes %s by\n", are, those)
	}
	if plan.Verb == operator.VerbRedeliver && plan.Oldest != nil && time.Since(*plan.Oldest) > sureToBeKnown {
		text.WriteString("A consumer that has forgotten an id by now handles the event again.\n")
	}
	for i, event := range plan.Sample {
		fmt.Fprintf(&text, "%s %s  %s  %s/%s\n", map[bool]string{true: "for instance", false: "            "}[i == 0],
			event.ID, event.Type, event.AggregateType, event.AggregateID)
	}
	return text.String()
}

// sureToBeKnown is for how long every consumer knows the ids that it has handled.
const sureToBeKnown = 24 * time.Hour

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// events is a number of them.
func events(n int64) string {
	if n == 1 {
		return "1 event"
	}
	return grouped(n) + " events"
}
