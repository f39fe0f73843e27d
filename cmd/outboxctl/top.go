package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// topCommand shows the status again and again.
type topCommand struct {
	root  *rootCommand
	every time.Duration
	count int
}

// newTop shows the status again and again.
func newTop(root *rootCommand) *cobra.Command {
	c := &topCommand{root: root}
	cmd := root.show(&cobra.Command{
		Use:   "top",
		Short: "Show the status again and again: health, backlog, rates, the slowest topics",
		Long: `Show the status again and again, until Ctrl-C: health with its reasons, the backlog, and the topics, the
slowest first. Rates and latencies are of the last five minutes that are over.

Where the output is not a terminal, each look follows the last; with -o ndjson it is one document per line.`,
		Example: "  outboxctl top\n  outboxctl top --every 5s\n  outboxctl top --count 1 -o ndjson",
		Args:    cobra.NoArgs,
	}, c.run)
	cmd.Flags().DurationVar(&c.every, "every", 2*time.Second, "how long between two looks")
	cmd.Flags().IntVar(&c.count, "count", 0, "how many looks; 0: until Ctrl-C")
	return cmd
}

func (c *topCommand) run(ctx context.Context, p *present.Printer) error {
	if c.every < 100*time.Millisecond {
		return usageError{fmt.Sprintf("--every %s is too short: use 100ms or more", c.every)}
	}
	looks := 0
	return c.root.watch(ctx, c.every, func(op *operator.Operator) (last bool, err error) {
		err = c.show(ctx, p, op)
		if err == nil {
			looks++
		}
		return looks == c.count && c.count > 0, err
	})
}

// show looks once.
func (c *topCommand) show(ctx context.Context, p *present.Printer, op *operator.Operator) error {
	status, err := op.Status(ctx)
	if err != nil {
		return err
	}
	slowest(status.Topics)
	return p.Stream(status, func() string {
		lines := append([]string{status.At.Format(time.TimeOnly) + "  " + p.Paint(present.Faint, "Ctrl-C ends it")},
			statusLines(p, status)...)
		rows := c.rows()
		if rows > 2 && len(lines) > rows-1 {
			lines = lines[:rows-1]
		}
		text := strings.Join(lines, "\n")
		if rows > 0 {
			text = "\x1b[H\x1b[2J" + text // the terminal's own screen, anew
		}
		return text
	})
}

// rows is how high the terminal is; 0: it is none.
func (c *topCommand) rows() int {
	terminal, ok := c.root.stdout.(*os.File)
	if !ok || c.root.getenv("TERM") == "dumb" || !term.IsTerminal(int(terminal.Fd())) {
		return 0
	}
	_, rows, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		return 0
	}
	return rows
}

// age is for how long the oldest event waits; none where that is not known.
func age(t operator.Traffic) float64 {
	if t.Oldest == nil {
		return 0
	}
	return *t.Oldest
}

// slowest sorts topics: what waits longest first, then what took longest.
func slowest(topics []operator.Traffic) {
	slices.SortStableFunc(topics, func(a, b operator.Traffic) int {
		first, _, _ := a.Latency(0.99)
		second, _, _ := b.Latency(0.99)
		return cmp.Or(cmp.Compare(age(b), age(a)), cmp.Compare(second, first))
	})
}
