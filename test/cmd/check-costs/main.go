// Command check-costs counts what an event costs the database, and fails where that is more than it was: pages, bytes
// of WAL, updates that leave their page, round trips. It measures no time, so it decides on any machine, however busy.
//
// It starts a PostgreSQL of its own, and takes a few seconds. It prints one line of name=value figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/kit/command"
)

func main() { os.Exit(command.Main("check-costs", run)) }

func run(ctx context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("check-costs", flag.ContinueOnError)
	change := flags.String("change", "SELECT", "a statement that changes the tables beforehand, to see what that costs")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	costs, err := drain.QuietCosts(ctx, *change)
	if err != nil {
		return false, err
	}
	return report(os.Stdout, costs)
}

// A limit is the most that a figure may be, or the least.
type limit struct {
	name  string
	value float64
	most  float64
	least float64
}

// limits are a little beyond what is measured today, which is in brackets. What comes to more shall be noticed when it
// is made, and allowed here by whoever has a reason.
func limits(c drain.Costs) []limit {
	return []limit{
		// (910) An event of 500 bytes with its three index entries and its commit. One more index is 60 and more.
		{name: "emit_wal", value: c.EmitWAL, most: 940},
		// (1) Once the statement is prepared.
		{name: "emit_round_trips", value: c.EmitTrips, most: 1},
		// (1.09) The rows of a lane lie scattered, so each has a page of its own; the way to 64 lanes is the rest.
		{name: "read_pages", value: c.ReadPages, most: 1.25},
		// (5.21) Three of the index and two of the table. Whatever is looked at besides is one more.
		{name: "settle_pages", value: c.SettlePages, most: 5.7},
		// (93 to 99, it depends on how much of the time of the settle is new) One record for the changed bytes of the row. An
		// index entry is 60 and more, the whole row 500.
		{name: "settle_wal", value: c.SettleWAL, most: 115},
		// (1) A page is filled to less than a half, so that all second versions fit.
		{name: "hot", value: c.Relay.HOT, most: 1, least: 0.999},
		// (106 to 128) A settle of a relay with what goes with it: commits, beats, its lanes.
		{name: "relay_wal", value: c.Relay.WAL, most: 150},
		// Not its round trips: the longer a drain takes, the more fences and looks are among them. One for every aggregate
		// would be hundreds.
		{name: "relay_settles", value: c.Relay.Settles, most: 10},
	}
}

// report prints what was counted, and tells whether all of it is within its limits.
func report(to io.Writer, costs drain.Costs) (ok bool, err error) {
	line := figures.New("check-costs")
	line.Addf("wal_level", "%s", costs.WALLevel)
	ok = true
	for _, l := range limits(costs) {
		line.Addf(l.name, "%.4g", l.value)
		if l.value > 0 && l.value >= l.least && l.value <= l.most { // what was not counted, or is no number, is not
			continue
		}
		ok = false
		if _, err := fmt.Fprintf(to, "MISSED: %s is %.4g, and may be %.4g to %.4g\n", l.name, l.value, l.least,
			l.most); err != nil {
			return false, fmt.Errorf("print: %w", err)
		}
	}
	line.Addf("ok", "%t", ok)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("print: %w", err)
	}
	return ok, nil
}
