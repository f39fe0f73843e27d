package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// printFleets tells every drain by several processes, and counts what must not be.
func (f *findings) printFleets(to io.Writer) error {
	if f.fleets == nil {
		return nil
	}
	table := bench.NewTable(
		"aggregates, delay", "relays", "events", "events/s", "to 80 %", "CPU s/1000", "server", "relays", "share least..most",
		"connections",
		"balanced", "unowned", "take-over", "lease", "lost", "order", "duplicates", "charged",
	)
	for _, of := range f.fleets {
		for _, turn := range of.turns {
			f.countVerdict(of, turn)
			table.Add(fleetLine(of, turn)...)
		}
	}
	return table.Print(to,
		"Relays in processes of their own; unowned is the longest time of any lane, looked at every 100 ms")
}

func (f *findings) countVerdict(of fleetTurns, turn drain.FleetTurn) {
	f.lost += turn.Verdict.Lost
	f.disorder += turn.Verdict.Disorder
	f.strange += turn.Verdict.Strange
	f.duplicates += turn.Verdict.Duplicates
	f.charged += turn.Charged
	f.unowned = max(f.unowned, turn.Unowned)
	if turn.Unowned > of.lease {
		f.problems = append(f.problems, fmt.Errorf("%s: a lane had no owner for %s, the lease is %s", of,
			turn.Unowned, of.lease))
	}
}

func fleetLine(of fleetTurns, turn drain.FleetTurn) []string {
	relays := len(turn.Shares)
	fair := float64(turn.Verdict.Events) / float64(relays)
	cpu, server, process := "", "", ""
	if !of.kill { // the killed one's CPU went with it
		cpu = fmt.Sprintf("%.4f", bench.TotalCPU(turn.Sample))
		server, process = fmt.Sprintf("%.4f", perThousand(turn.Turn, turn.ServerCPU)),
			fmt.Sprintf("%.4f", perThousand(turn.Turn, turn.ClientCPU))
	}
	takeOver := ""
	if of.kill {
		takeOver = turn.Takeover.Round(time.Millisecond).String()
	}
	return []string{
		of.String(), strconv.Itoa(relays), strconv.Itoa(turn.Verdict.Events),
		fmt.Sprintf("%.0f", bench.Throughput(turn.Sample)),
		fmt.Sprintf("%.2f s", turn.Until80.Seconds()), cpu, server, process,
		fmt.Sprintf("%.2f..%.2f", float64(slices.Min(turn.Shares))/fair, float64(slices.Max(turn.Shares))/fair),
		strconv.Itoa(turn.Connections),
		fmt.Sprintf("%.1f s", turn.Balanced.Seconds()), fmt.Sprintf("%d ms", turn.Unowned.Milliseconds()), takeOver,
		of.lease.String(),
		strconv.Itoa(turn.Verdict.Lost), strconv.Itoa(turn.Verdict.Disorder), strconv.Itoa(turn.Verdict.Duplicates),
		strconv.Itoa(turn.Charged),
	}
}

// printFleetRatios compares the fleets with one relay.
func (f *findings) printFleetRatios(to io.Writer) error {
	if f.fleets == nil {
		return nil
	}
	table := bench.NewTable("aggregates, delay", "relays", "throughput against 1", "min..max", "CPU per event against 1",
		"min..max", "of the order's limit")
	for i, of := range f.fleets {
		if of.kill {
			continue
		}
		for _, relays := range of.relays {
			if err := f.addFleetRatio(table, i == 0, of, relays); err != nil {
				return err
			}
		}
	}
	return table.Print(to, "Several relays against one: medians. The order's limit is one aggregate's events, one after "+
		"the other, at the broker's delay")
}

func (f *findings) addFleetRatio(table *bench.Table, first bool, of fleetTurns, relays int) error {
	subject := strconv.Itoa(relays)
	turns := make([]bench.Sample, len(of.turns))
	var own []drain.FleetTurn
	for i, turn := range of.turns {
		turns[i] = turn.Sample
		if turn.Subject == subject {
			own = append(own, turn)
		}
	}
	throughput, err := bench.Compare(turns, bench.Throughput, subject, "1")
	if err != nil {
		return err
	}
	cpu, err := bench.Compare(turns, bench.TotalCPU, subject, "1")
	if err != nil {
		return err
	}
	limit := ""
	if of.delay > 0 {
		least := time.Duration(of.hottest) * of.delay
		limit = fmt.Sprintf("%.2f", median(own, func(t drain.FleetTurn) float64 {
			return least.Seconds() / t.Elapsed.Seconds()
		}))
	}
	table.Add(
		of.String(), subject, fmt.Sprintf("%.2f", throughput.Median),
		fmt.Sprintf("%.2f..%.2f", throughput.Min, throughput.Max),
		fmt.Sprintf("%.2f", cpu.Median), fmt.Sprintf("%.2f..%.2f", cpu.Min, cpu.Max), limit,
	)
	switch {
	case relays != 16:
	case of.rate > 0:
		f.figures.Addf("cpu16_offered", "%.2f", cpu.Median)
		f.measured["cpu16_offered"] = measured{value: cpu.Median, resolution: (cpu.Max - cpu.Min) / 2}
	case first:
		f.figures.Addf("thr16", "%.2f", throughput.Median)
		f.figures.Addf("cpu16", "%.2f", cpu.Median)
	}
	return nil
}
