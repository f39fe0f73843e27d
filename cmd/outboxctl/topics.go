package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newTopics lists the topics.
func newTopics(root *rootCommand) *cobra.Command {
	cmd := root.show(&cobra.Command{
		Use:   "topics",
		Short: "List the topics, with what is paused and limited and why; pause, limit and test one",
		Long: `List the topics: which event types go there and which relays know them, as the relays that are there say it;
whether relays have paused it by themselves, because publishing fails (failing: since when and with which error), and
whether operators have paused it, or a type that goes there, or limited it (who, since when and why).

The viewer role is enough.`,
		Example: "  outboxctl topics\n  outboxctl topics -o json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			topics, err := op.Topics(ctx)
			if err != nil {
				return err
			}
			return present.List(p, topics, "no relay that is there knows a topic", topicColumns(time.Now())...)
		})
	})
	cmd.AddCommand(newTopicsPause(root), newTopicsResume(root), newTopicsLimit(root), newTopicsTest(root))
	return cmd
}

func topicColumns(now time.Time) []present.Column[operator.Topic] {
	return []present.Column[operator.Topic]{
		{Name: "TOPIC", Of: func(t operator.Topic) string { return t.Name }},
		{
			Name: "STATE", Of: topicState,
			Style: func(t operator.Topic) present.Style {
				switch {
				case len(t.Failing) > 0:
					return present.Bad
				case len(t.Paused) > 0 || t.Limit != nil:
					return present.Warn
				}
				return present.Good
			},
		},
		{Name: "TYPES", Of: func(t operator.Topic) string {
			var names []string
			for _, known := range t.Types {
				names = append(names, known.Name)
			}
			return strings.Join(names, " ")
		}},
		{Name: "KNOWN TO", Of: func(t operator.Topic) string {
			seen := map[string]bool{}
			var names []string
			for _, known := range t.Types {
				for _, name := range known.Relays {
					if !seen[name] {
						seen[name] = true
						names = append(names, name)
					}
				}
			}
			return strings.Join(names, " ")
		}},
		{Name: "WHY", Optional: true, Of: func(t operator.Topic) string { return topicReasons(now, t) }},
	}
}

func topicState(topic operator.Topic) string {
	var states []string
	if len(topic.Failing) > 0 {
		states = append(states, "failing")
	}
	if len(topic.Paused) > 0 {
		states = append(states, "paused")
	}
	if topic.Limit != nil {
		states = append(states, "limited to "+operator.PerSecond(topic.Limit.Rate)+"/s")
	}
	if len(states) == 0 {
		return "healthy"
	}
	return strings.Join(states, ", ")
}

// topicReasons says why a topic carries nothing, or less than it could.
func topicReasons(now time.Time, topic operator.Topic) string {
	var reasons []string
	for _, failure := range topic.Failing {
		reasons = append(reasons, fmt.Sprintf("%s, %s: %s", failure.RelayName, ago(failure.Since, now), failure.Error))
	}
	for _, pause := range topic.Paused {
		reasons = append(reasons, fmt.Sprintf("%s paused by %s, %s: %s", pause.Scope, pause.Actor,
			ago(pause.Since, now), pause.Reason))
	}
	if limit := topic.Limit; limit != nil {
		reasons = append(reasons, fmt.Sprintf("limited to %s per second by %s, %s: %s", operator.PerSecond(limit.Rate),
			limit.Actor, ago(limit.Since, now), limit.Reason))
	}
	return strings.Join(reasons, "; ")
}
