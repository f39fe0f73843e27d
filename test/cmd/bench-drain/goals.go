package main

import (
	"fmt"
	"io"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// measured is a figure, and the smallest difference that the run could see in it.
type measured struct{ value, resolution float64 }

// goals are those of the project that a run of this command measures, by the key of the figure.
var goals = []struct {
	key, figure string
	goal        *bench.Goal
}{
	{"server_cpu_relay_minimal", "server CPU per event, typed contract, against the minimal loop", bench.AtMost(1.8)},
	{"relay_minimal", "drain rate, typed contract, against the minimal loop", bench.AtLeast(0.6)},
	{"relay_rowlease", "drain rate, typed contract, against the row-lease loop", bench.AtLeast(2)},
	{"nats_typed", "drain rate over NATS, typed contract, against the bare loop", bench.AtLeast(0.8)},
	{"relay_wal", "WAL of a settled event with what goes with it, bytes, wal_level replica", bench.AtMost(150)},
	{"hot", "share of HOT updates", bench.AtLeast(0.98)},
	{"cpu16_offered", "16 relays against 1 at 2,000 events/s offered, CPU per event", bench.AtMost(1.25)},
}

// printGoals tells how the goals stand, of those that this run has measured.
func (f *findings) printGoals(to io.Writer) error {
	table := bench.NewGoals()
	for _, g := range goals {
		if m, ok := f.measured[g.key]; ok {
			table.Add(g.figure, g.goal, m.value, m.resolution)
		}
	}
	return table.Print(to)
}

// printCounts tells what the drains cost that is counted: no other work on the machine changes it.
func (f *findings) printCounts(to io.Writer) error {
	if f.single == nil {
		return nil
	}
	table := bench.NewTable("subject", "WAL bytes", "share of HOT updates", "round trips/1000", "pages to read",
		"pages to settle")
	for _, turn := range f.single {
		if c := turn.Counts; c != nil {
			table.Add(turn.Subject, fmt.Sprintf("%.0f", c.WAL), fmt.Sprintf("%.3f", c.HOT),
				fmt.Sprintf("%.1f", c.RoundTrips), fmt.Sprintf("%.2f", c.Read), fmt.Sprintf("%.2f", c.Settle))
		}
	}
	if err := table.Print(to, "Counts per event, of the first turn of each; WAL without page images, wal_level "+
		f.walLevel); err != nil {
		return err
	}
	q := f.quiet
	table = bench.NewTable("what", "per event")
	for _, line := range []struct {
		key, what, format string
		value             float64
	}{
		{"relay_wal", "WAL of a drain by a relay, bytes", "%.0f", q.Relay.WAL},
		{"settle_wal", "WAL of a settle of 1,024 events, bytes", "%.0f", q.SettleWAL},
		{"emit_wal", "WAL of an emit and its commit, bytes", "%.0f", q.EmitWAL},
		{"hot", "share of HOT updates", "%.3f", q.Relay.HOT},
		{"read_pages", "pages to read it, of 1,024 in 64 lanes", "%.2f", q.ReadPages},
		{"settle_pages", "pages to settle it, of as many", "%.2f", q.SettlePages},
		{"relay_round_trips", "round trips of a relay for 1,000 events, its start among them", "%.1f", q.Relay.RoundTrips},
	} {
		table.Add(line.what, fmt.Sprintf(line.format, line.value))
		f.figures.Addf(line.key, line.format, line.value)
		f.measured[line.key] = measured{value: line.value}
	}
	return table.Print(to, "Counts on a server of its own: "+q.Server+", wal_level "+q.WALLevel)
}
