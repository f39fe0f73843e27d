package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

func newEventsExplain(root *rootCommand) *cobra.Command {
	var id outbox.ID
	read := oneEvent(&id)
	return root.show(&cobra.Command{
		Use:   "explain ID",
		Short: "Say why an event waits, and what to do about it",
		Long: `Say why an event waits, with all causes at once and the most important first, or what became of it.

The causes, as -o json names them: published, discarded, dead, dead_blocking, pruned, not_found, restored, standby,
no_relay, paused_all, paused_topic, paused_type, behind_dead, type_unknown, behind_parked, lane_unheld, topic_failing,
relay_stuck, known_by_others, parked, quarantine, behind_retrying, backoff, backlog, below_floor,
behind_nothing, due, open_writer.

The exit code is 3 where the event is not found; one that retention may have deleted is explained, with 0.

How old other transactions are PostgreSQL shows only to members of pg_read_all_stats, and each role its own.`,
		Example: `  outboxctl events explain 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e
  outboxctl events explain 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e -o json`,
		Args: func(_ *cobra.Command, args []string) error { return read(args) },
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			found, err := op.Explain(ctx, id)
			if err != nil {
				return err
			}
			err = p.One(found, func() []string { return explanationLines(p, found, time.Now()) })
			if err == nil && slices.ContainsFunc(found.Causes, func(cause operator.Cause) bool {
				return cause.Code == operator.CauseNotFound
			}) {
				return statusError{exitNotFound}
			}
			return err
		})
	})
}

// explanationLines are what people see of an explanation.
func explanationLines(p *present.Printer, found operator.Explanation, now time.Time) []string {
	head := p.Paint(present.Bold, found.ID.String()) + " is not in the table"
	if e := found.Event; e != nil {
		head = p.Paint(present.Bold, e.Type) + " of " + p.Paint(present.Bold, e.AggregateType+"/"+e.AggregateID) + " is " +
			p.Paint(styleOf(e.State), e.State) + ", created " + ago(e.CreatedAt, now) + fmt.Sprintf(", lane %d, ", e.Lane) +
			p.Paint(present.Plain, holderText(*found.Holder, now))
	}
	lines := []string{head}
	for i, cause := range found.Causes {
		number := "  "
		if len(found.Causes) > 1 {
			number = fmt.Sprintf("%d ", i+1)
		}
		style := present.Plain
		if cause.Keeps {
			style = present.Warn
		}
		for j, line := range wrap(cause.Says, 110) {
			if j > 0 {
				number = "  "
			}
			lines = append(lines, number+p.Paint(style, line))
		}
		for j, line := range wrap(cause.Do, 108) {
			mark := "    "
			if j == 0 {
				mark = "  " + p.Paint(present.Good, ">") + " "
			}
			lines = append(lines, mark+p.Paint(present.Plain, line))
		}
	}
	return lines
}

// wrap breaks a text into lines at its spaces.
func wrap(text string, width int) []string {
	var lines []string
	for runes := []rune(text); len(runes) > 0; {
		end := len(runes)
		if end > width {
			end = width
			for end > 0 && runes[end] != ' ' {
				end--
			}
			if end == 0 { // one long word
				end = width
			}
		}
		lines = append(lines, string(runes[:end]))
		for runes = runes[end:]; len(runes) > 0 && runes[0] == ' '; {
			runes = runes[1:]
		}
	}
	return lines
}
