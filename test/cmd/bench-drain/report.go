package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// errMust is a run in which something happened that must not.
var errMust = errors.New("a must was missed")

// findings are all that a run measured.
type findings struct {
	options options
	server  string
	// walLevel is that of the server on which time is measured.
	walLevel string
	single   []drain.Turn
	quiet    drain.Costs
	fleets   []fleetTurns

	figures  *figures.Line
	measured map[string]measured // by the key of the figure
	problems []error
	// What must be zero, and what is only told.
	lost, disorder, strange, duplicates, charged int
	unowned                                      time.Duration
}

// print writes everything, the figures last.
func (f *findings) print(to io.Writer) error {
	_, err := fmt.Fprintf(to, "%s, %d cores; 500-byte payloads, aggregates out of 10,000\n", f.server, runtime.NumCPU())
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	f.measured = map[string]measured{}
	for _, part := range []func(io.Writer) error{
		f.printRatios, f.printSplit, f.printCounts, f.printFleets, f.printFleetRatios, f.printGoals,
	} {
		if err := part(to); err != nil {
			return err
		}
	}
	f.assess()
	if _, err := fmt.Fprintf(to, "\n%s\n", f.figures); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if len(f.problems) > 0 {
		return fmt.Errorf("%w: %w", errMust, errors.Join(f.problems...))
	}
	return nil
}

// assess adds the musts to the last line.
func (f *findings) assess() {
	for _, must := range []struct {
		count int
		what  string
	}{
		{f.lost, "events lost"},
		{f.disorder, "events out of order"},
		{f.strange, "arrivals that are no events"},
	} {
		if must.count > 0 {
			f.problems = append(f.problems, fmt.Errorf("%d %s", must.count, must.what))
		}
	}
	if f.fleets != nil {
		f.figures.Addf("unowned_max_ms", "%d", f.unowned.Milliseconds())
	}
	f.figures.Addf("lost", "%d", f.lost)
	f.figures.Addf("order", "%d", f.disorder)
	f.figures.Addf("duplicates", "%d", f.duplicates)
	f.figures.Addf("charged", "%d", f.charged)
	f.figures.Addf("ok", "%t", len(f.problems) == 0)
}

// comparison is one line of the table of ratios.
type comparison struct {
	subject string
	against []string
	key     string
}

func (f *findings) comparisons() []comparison {
	bases := []string{bare, bareAgain}
	all := []comparison{
		{subject: bareAgain, against: []string{bare}, key: "aa"},
		{subject: relayUnchecked, against: bases, key: "relay_bare"},
		{subject: relayTyped, against: bases, key: "relay_bare_typed"},
		{subject: relaySchema, against: bases, key: "relay_bare_schema"},
		{subject: relayTyped, against: []string{rowLease}, key: "relay_rowlease"},
		{subject: rowLease, against: bases},
		{subject: bare, against: []string{minimal}, key: "bare_minimal"},
		{subject: relayTyped, against: []string{minimal}, key: "relay_minimal"},
		{subject: relayNATS, against: []string{bareNATS}, key: "nats_typed"},
	}
	if f.options.long {
		all = append(all, comparison{subject: bareApart, against: bases})
	}
	return all
}

// printRatios compares what one relay does with the loops.
func (f *findings) printRatios(to io.Writer) error {
	if f.single == nil {
		return nil
	}
	turns := samples(f.single)
	for _, kind := range []struct {
		name   string
		metric bench.Metric
		key    string
	}{
		{"drain rate", bench.Throughput, ""},
		{"CPU per event, server and process", bench.TotalCPU, "cpu_"},
		{"CPU per event, server", bench.ServerCPU, "server_cpu_"},
	} {
		control, err := bench.Compare(turns, kind.metric, bareAgain, bare)
		if err != nil {
			return err
		}
		table := bench.NewTable("subject", "against", "ratio", "min..max")
		for _, c := range f.comparisons() {
			ratio, err := bench.Compare(turns, kind.metric, c.subject, c.against...)
			if err != nil {
				return err
			}
			f.addRatio(table, c, ratio, control, kind.key)
		}
		title := fmt.Sprintf("%s: median over %d turns of the ratio within a turn, %d events each; A/A quartiles %.3f..%.3f",
			kind.name, f.options.pairs, f.options.events, control.Q1, control.Q3)
		if err := table.Print(to, title); err != nil {
			return err
		}
	}
	return nil
}

func (f *findings) addRatio(table *bench.Table, c comparison, ratio, control bench.Ratio, prefix string) {
	table.Add(
		c.subject, c.against[0], fmt.Sprintf("%.3f", ratio.Median), fmt.Sprintf("%.2f..%.2f", ratio.Min, ratio.Max),
	)
	if c.key == "" {
		return
	}
	f.measured[prefix+c.key] = measured{ratio.Median, control.Resolution()}
	if prefix+c.key == "aa" {
		f.figures.Addf(c.key, "%.3f..%.3f", ratio.Q1, ratio.Q3)
		return
	}
	f.figures.Addf(prefix+c.key, "%.3f", ratio.Median)
}

// printSplit tells where the time goes: what limits a subject is what it spends.
func (f *findings) printSplit(to io.Writer) error {
	if f.single == nil {
		return nil
	}
	table := bench.NewTable("subject", "server", "process", "NATS", "sum", "cores busy", "connections", "events/s")
	for _, subject := range f.options.subjects() {
		var of []drain.Turn
		for _, turn := range f.single {
			if turn.Subject == subject {
				of = append(of, turn)
			}
		}
		server := median(of, func(t drain.Turn) float64 { return perThousand(t, t.ServerCPU) })
		process := median(of, func(t drain.Turn) float64 { return perThousand(t, t.ClientCPU) })
		broker := median(of, func(t drain.Turn) float64 { return perThousand(t, t.BrokerCPU) })
		table.Add(
			subject, fmt.Sprintf("%.4f", server), fmt.Sprintf("%.4f", process), fmt.Sprintf("%.4f", broker),
			fmt.Sprintf("%.4f", server+process+broker),
			fmt.Sprintf("%.2f", median(of, busy)),
			fmt.Sprintf("%.0f", median(of, func(t drain.Turn) float64 { return float64(t.Connections) })),
			fmt.Sprintf("%.0f", median(of, func(t drain.Turn) float64 { return bench.Throughput(t.Sample) })),
		)
	}
	return table.Print(to, "What limits: CPU-seconds for 1,000 events, medians; events/s are this machine's at this "+
		"hour, compare nothing across runs")
}

func perThousand(t drain.Turn, used time.Duration) float64 {
	return 1000 * used.Seconds() / float64(t.Transactions)
}

// busy is how many cores a turn kept busy. One that keeps fewer busy than it could waits for something.
func busy(t drain.Turn) float64 {
	return (t.ServerCPU + t.ClientCPU + t.BrokerCPU).Seconds() / t.Elapsed.Seconds()
}

func median[T any](of []T, figure func(T) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	values := make([]float64, len(of))
	for i, one := range of {
		values[i] = figure(one)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
