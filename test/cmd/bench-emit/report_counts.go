package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// walSubject is a subject with the name of its figure and its goal, where it has them.
type walSubject struct {
	name, key  string
	goal, most *bench.Goal
}

// printWAL compares the bytes of WAL of whole transactions, and of the event's statement alone.
func (f *findings) printWAL(to io.Writer) error {
	table := bench.NewTable("subject", "bytes/transaction", "ratio", "goal", "verdict", "ratio of the event alone",
		"with page images", "ratio with page images")
	base, empty := f.wal[bare], f.wal[noEvent]
	runs := float64(f.options.walRuns)
	for _, subject := range []walSubject{
		{name: noEvent},
		{name: bare},
		{name: bareAgain, key: "aa_wal"},
		{name: emitOne, key: "wal", goal: goalWAL, most: mostWAL},
		{name: emitKeyed, key: "wal_dedupe", goal: goalWALKeyed, most: mostWALKeyed},
	} {
		wal := f.wal[subject.name]
		ratio := float64(wal.Data()) / float64(base.Data())
		withImages := float64(wal.Bytes) / float64(base.Bytes)
		alone := float64(wal.Data()-empty.Data()) / float64(base.Data()-empty.Data())
		f.assessCount(subject.key, subject.most, ratio)
		verdict := subject.goal.Assess(ratio, 0)
		f.addGoal("WAL", 1, subject.name, subject.goal, ratio, verdict)
		table.Add(
			subject.name, fmt.Sprintf("%.0f", float64(wal.Data())/runs), fmt.Sprintf("%.3f", ratio), subject.goal.String(),
			string(verdict),
			fmt.Sprintf("%.2f", alone), fmt.Sprintf("%.0f", float64(wal.Bytes)/runs), fmt.Sprintf("%.2f", withImages),
		)
		if subject.key != "" {
			f.figures.Addf(subject.key, "%.3f", ratio)
		}
		if subject.goal != nil {
			f.figures.Addf(subject.key+"_images", "%.2f", withImages)
		}
	}
	title := fmt.Sprintf("WAL: one client, %d transactions after a checkpoint, without full-page images unless said",
		f.options.walRuns)
	if err := table.Print(to, title); err != nil {
		return err
	}
	return f.printWALMany(to)
}

func (f *findings) printWALMany(to io.Writer) error {
	table := bench.NewTable("subject", "bytes/event", "ratio", "with page images", "ratio with page images")
	base := f.walMany[bareMany]
	runs := float64(max(f.options.walRuns/manyEvents, 5) * manyEvents)
	for _, name := range []string{bareMany, bareUnnest, emitMany, emitManyKeyed} {
		wal := f.walMany[name]
		ratio := float64(wal.Data()) / float64(base.Data())
		table.Add(
			name, fmt.Sprintf("%.0f", float64(wal.Data())/runs), fmt.Sprintf("%.3f", ratio),
			fmt.Sprintf("%.0f", float64(wal.Bytes)/runs), fmt.Sprintf("%.2f", float64(wal.Bytes)/float64(base.Bytes)),
		)
		if name == emitMany {
			f.figures.Addf("many100_wal", "%.3f", ratio)
		}
	}
	return table.Print(to, "WAL of 100 events in one transaction")
}

// assessCount holds a figure that does not vary to its limit, and keeps a miss as the run's failure.
func (f *findings) assessCount(key string, most *bench.Goal, ratio float64) {
	if most.Assess(ratio, 0) == bench.Missed {
		f.problems = append(f.problems, fmt.Errorf("%s is %.3f, the limit is %s", key, ratio, most))
	}
}

// printRelations tells what each table and index adds to the WAL of one event.
func (f *findings) printRelations(to io.Writer) error {
	table := bench.NewTable("relation", "bare INSERT", "emit", "emit, dedupe key", "page images: bare INSERT", "emit",
		"emit, dedupe key")
	runs := int64(f.options.walRuns)
	names := map[string]bool{}
	for _, subject := range []string{bare, emitOne, emitKeyed} {
		for name := range f.wal[subject].ByRelation {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		cells := []string{name}
		for _, images := range []bool{false, true} {
			for _, subject := range []string{bare, emitOne, emitKeyed} {
				wal := f.wal[subject].ByRelation[name]
				bytes := wal.Data()
				if images {
					bytes = wal.PageImages
				}
				cells = append(cells, fmt.Sprint(bytes/runs))
			}
		}
		table.Add(cells...)
	}
	return table.Print(to, "WAL by relation: bytes a transaction")
}

// printTrips tells the round trips, and fails the run when an emit takes more than one.
func (f *findings) printTrips(to io.Writer) error {
	table := bench.NewTable("subject", "first on a connection", "later")
	for _, t := range f.trips {
		table.Add(t.subject, fmt.Sprint(t.first), fmt.Sprint(t.later))
		if t.later != 1 {
			f.problems = append(f.problems, fmt.Errorf("%s takes %d round trips, the goal is 1", t.subject, t.later))
		}
		if t.subject == emitOne {
			f.figures.Addf("roundtrips", "%d", t.later)
		}
	}
	return table.Print(to, "Round trips of the event's statement, pgx")
}

// printCosts tells what each index and the trigger cost, by what an emit takes without it.
func (f *findings) printCosts(to io.Writer) error {
	if f.costs == nil || !f.seesCPU {
		return nil
	}
	if err := f.printCostsOf(to, 1, f.costs.one); err != nil {
		return err
	}
	return f.printCostsOf(to, manyEvents, f.costs.hundred)
}

func (f *findings) printCostsOf(to io.Writer, events int, samples []bench.Sample) error {
	control, err := bench.Compare(samples, bench.ServerCPU, shippedAgain, shipped)
	if err != nil {
		return err
	}
	table := bench.NewTable("the outbox", "backend CPU", "min..max", "us/event", "saves us/event")
	whole := float64(cpuPerTransaction(samples, shipped, shippedAgain)) / 1000 / float64(events)
	table.Add(shipped, "1.000", "", fmt.Sprintf("%.1f", whole), "")
	for _, subject := range f.costs.copies {
		ratio, err := bench.Compare(samples, bench.ServerCPU, subject, shipped, shippedAgain)
		if err != nil {
			return err
		}
		table.Add(
			subject, fmt.Sprintf("%.3f", ratio.Median), fmt.Sprintf("%.2f..%.2f", ratio.Min, ratio.Max),
			fmt.Sprintf("%.1f", whole*ratio.Median), fmt.Sprintf("%.1f", whole*(1-ratio.Median)),
		)
		if events == 1 {
			f.figures.Addf("cpu_"+short(subject), "%.3f", ratio.Median)
		}
	}
	title := fmt.Sprintf("What each index and the trigger cost: a transaction of %d events and nothing else, "+
		"A/A quartiles %.3f..%.3f", events, control.Q1, control.Q3)
	return table.Print(to, title)
}
