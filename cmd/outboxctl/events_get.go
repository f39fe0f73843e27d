package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

func plain(n int) string { return strconv.Itoa(n) }

func newEventsGet(root *rootCommand) *cobra.Command {
	var id outbox.ID
	var payload bool
	read := oneEvent(&id)
	cmd := root.show(&cobra.Command{
		Use:   "get ID",
		Short: "Show everything about one event",
		Long: `Show everything about one event: where it stands, who holds its lane, its dead letters, and what operators did.

Payload, headers and dedupe key are shown with --payload, for a role that may read them: viewer and operator may not.`,
		Example: `  outboxctl events get 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e
  outboxctl events get 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e --payload -o json`,
		Args: func(_ *cobra.Command, args []string) error { return read(args) },
	}, func(ctx context.Context, p *present.Printer) error {
		return root.look(ctx, func(op *operator.Operator) error {
			detail, err := op.Event(ctx, id, payload)
			if errors.Is(err, operator.ErrNoEvent) {
				return problem{
					code: "not_found", exit: exitNotFound, err: fmt.Errorf("there is no event %s", id),
					hint: "'outboxctl events explain " + id.String() + "' says what is known of it",
				}
			}
			if err != nil {
				return err
			}
			return p.One(detail, func() []string { return eventLines(p, detail, time.Now()) })
		})
	})
	cmd.Flags().BoolVar(&payload, "payload", false, "with payload, headers and dedupe key")
	return cmd
}

// eventLines are what people see of one event.
func eventLines(p *present.Printer, d operator.EventDetail, now time.Time) []string {
	var lines []string
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, p.Paint(present.Faint, name)+strings.Repeat(" ", 11-len(name))+text)
		}
	}
	moment := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return at.UTC().Format(time.RFC3339) + ", " + ago(*at, now)
	}
	lines = append(lines, p.Paint(present.Bold, d.Type)+" "+p.Paint(present.Plain, d.ID.String())+" is "+
		p.Paint(styleOf(d.State), d.State))
	add("aggregate", p.Paint(present.Plain, d.AggregateType+"/"+d.AggregateID+" in "+d.Namespace))
	add("tenant", p.Paint(present.Plain, d.Tenant))
	add("topic", p.Paint(present.Plain, d.Topic))
	add("created", moment(&d.CreatedAt))
	add("published", moment(d.PublishedAt))
	add("held", moment(d.HeldSince))
	add("due", moment(d.DueAt))
	add("number", fmt.Sprintf("%d in lane %d, %s", d.Seq, d.Lane, p.Paint(present.Plain, holderText(d.Holder, now))))
	if d.Attempts > 0 {
		add("attempts", plain(d.Attempts))
	}
	add("error", p.Paint(present.Plain, d.LastError))
	if d.Erased {
		add("erased", "payload and headers: a hash of what was there is left")
	}
	for _, attempt := range d.History {
		add("failed", p.Paint(present.Plain, fmt.Sprintf("%d, %s, %s: %s", attempt.Number, ago(attempt.At, now),
			attempt.Class, attempt.Error)))
	}
	for _, letter := range d.DeadLetters {
		text := fmt.Sprintf("%s, %s: %s", ago(letter.FailedAt, now), letter.Reason, letter.Detail)
		if letter.Resolved != "" {
			text += fmt.Sprintf(" (%s by %s %s)", letter.Resolved, letter.ResolvedBy, ago(letter.ResolvedAt, now))
		}
		add("died", p.Paint(present.Plain, text))
	}
	for _, action := range d.Actions {
		add("action", p.Paint(present.Plain, fmt.Sprintf("%s by %s %s: %s", action.Verb, action.Actor,
			ago(action.At, now), action.Reason)))
	}
	add("key", p.Paint(present.Plain, d.DedupeKey))
	add("headers", p.Paint(present.Plain, string(d.Headers)))
	add("payload", p.Paint(present.Plain, string(d.Payload)))
	return lines
}

// holderText says who holds a lane.
func holderText(h operator.LaneHolder, now time.Time) string {
	switch {
	case h.Relay == "":
		return "held by nobody"
	case !h.Alive:
		return "held by " + h.Relay + ", which has been silent for " + strings.TrimSuffix(agoOf(h.LastBeat, now), " ago")
	default:
		return "held by " + h.Relay
	}
}
