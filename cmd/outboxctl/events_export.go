package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// eventsExport writes whole events.
type eventsExport struct {
	root      *rootCommand
	args      []string
	after     string
	noPayload bool
	most      int
}

func newEventsExport(root *rootCommand) *cobra.Command {
	c := &eventsExport{root: root}
	cmd := &cobra.Command{
		Use:   "export [FILTER...]",
		Short: "Write whole events, a line of JSON each",
		Long: `Write whole events with their payloads to stdout, a line of JSON each, the newest first. It reads page by
page, and says on stderr how far it is. Where it was stopped, --after goes on.

It needs a role that may read all of outbox_events; --no-payload leaves out payload, headers and dedupe key, for which
viewer is enough.

` + filterHelp,
		Example: `  outboxctl events export 'created:<1d' > events.ndjson
  outboxctl events export type:order_created --no-payload
  outboxctl events export --after id.01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e >> events.ndjson`,
		Args: func(_ *cobra.Command, args []string) error { c.args = args; return nil },
		RunE: run(func(ctx context.Context, _ io.Writer) error { return c.run(ctx) }),
	}
	cmd.Flags().StringVar(&c.after, "after", "", "go on where an export was stopped, as that said")
	cmd.Flags().BoolVar(&c.noPayload, "no-payload", false, "without payload, headers and dedupe key")
	cmd.Flags().IntVar(&c.most, "count", 0, "end after so many events; 0: all")
	return cmd
}

func (c *eventsExport) run(ctx context.Context) error {
	filter, err := filterOf(c.args)
	if err != nil {
		return err
	}
	return c.root.look(ctx, func(op *operator.Operator) error { return c.export(ctx, op, filter) })
}

func (c *eventsExport) export(ctx context.Context, op *operator.Operator, filter operator.Filter) error {
	p := present.New(c.root.stdout, present.NDJSON, false)
	page := operator.Page{Limit: operator.MaxEventPage, After: c.after}
	if !c.noPayload {
		page.Limit, page.Payloads = operator.MaxEventPageWithPayload, true
	}
	written, begun, told := 0, time.Now(), time.Now()
	for {
		if c.most > 0 {
			page.Limit = min(page.Limit, c.most-written)
		}
		found, err := op.Events(ctx, filter, page)
		if err != nil {
			if page.After != "" { // also where it was interrupted
				c.say(written, begun, ", go on with --after "+page.After)
			}
			if ctx.Err() != nil {
				err = errors.Join(ctx.Err(), err)
			}
			return err
		}
		for _, event := range found.Events {
			if err := p.Stream(event, nil); err != nil {
				return err
			}
		}
		written += len(found.Events)
		if page.After = found.Next; page.After == "" || c.most > 0 && written >= c.most {
			break
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			c.say(written, begun, ", goes on at --after "+page.After)
		}
	}
	end := ""
	if page.After != "" {
		end = ", there is more at --after " + page.After
	}
	c.say(written, begun, end)
	return nil
}

// say tells how far it is.
func (c *eventsExport) say(written int, begun time.Time, end string) {
	took := time.Since(begun)
	_, _ = fmt.Fprintf(c.root.warn, "%d events in %s, %.0f/s%s\n", written, took.Round(time.Millisecond),
		float64(written)/took.Seconds(), end)
}
