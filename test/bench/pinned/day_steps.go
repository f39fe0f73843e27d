package pinned

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// dayStep is one of the things that relays do, and how to find it among what the server has counted.
type dayStep struct {
	name    string
	text    string // a part of the statement
	lookups int    // see Step
	// ready prepares a few in a row, where something is to be prepared.
	ready func(ctx context.Context, e *dayEnv) error
	// do does it once, and tells how long its statement took.
	do func(ctx context.Context, e *dayEnv) (time.Duration, error)
}

// A fresh table of beats is one page, and whoever looks for a beat reads that. After a day there are 70,000 dead ones,
// on 700 pages of an index that has three levels then (a fourth comes after months): three pages more for each look. A
// new beat is put into the index in both, and passes two levels more.
const (
	lookup = 3
	insert = 2
)

// daySteps are what the goal of the project names.
var daySteps = []dayStep{
	// Neither looks at beats: they ask the relay's row, which changes only with its lanes.
	{name: "read", text: "pg_visible_in_snapshot", do: dayRead},
	{name: "settle", text: "published_at = clock_timestamp()", do: daySettle},
	// The beat before, for its floors; the new one; and the one that goes.
	{name: "beat", text: "outbox_beats (relay, number, until", lookups: 2*lookup + insert, do: dayBeat},
	// The newest beat of every relay but its own, and that of the dead one once more behind its lock.
	{name: "take-over", text: "outbox_end_expired", lookups: dayRelays * lookup, do: dayTakeOver, ready: dayClear},
}

// everyBeat is what nobody does.
var everyBeat = dayStep{name: "every beat", text: "SELECT max(b.until)", do: func(ctx context.Context,
	e *dayEnv,
) (time.Duration, error) {
	return timed(func() error {
		_, err := e.conn.Exec(ctx, "SELECT max(b.until) FROM public.outbox_beats b")
		return err
	})
}}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// The first relay does it all.
func dayRead(ctx context.Context, e *dayEnv) (took time.Duration, err error) {
	h := e.holders[0]
	return timed(func() error {
		events, err := h.Read(ctx, e.conn, dayEach)
		if err == nil && len(events) != dayEach*len(h.Lanes) {
			err = fmt.Errorf("%d events of %d lanes were ready, want %d of each", len(events), len(h.Lanes), dayEach)
		}
		return err
	})
}

func daySettle(ctx context.Context, e *dayEnv) (time.Duration, error) {
	h := e.holders[0]
	events, err := h.Read(ctx, e.conn, dayEach)
	if err != nil {
		return 0, err
	}
	h.Pass(events)
	return timed(func() error { return h.Settle(ctx, e.conn, events) })
}

func dayBeat(ctx context.Context, e *dayEnv) (time.Duration, error) {
	return timed(func() error { return e.holders[0].Beat(ctx, e.conn, 24*time.Hour) })
}

// dayClear clears away what take-overs have left that were taken back: rows that never were can be, whatever snapshot
// is held. Sessions plan anew after it.
func dayClear(ctx context.Context, e *dayEnv) error {
	if err := e.Exec(ctx, "VACUUM public.outbox_lanes, public.outbox_relays"); err != nil {
		return err
	}
	_, err := dayTakeOver(ctx, e)
	return err
}

// dayTakeOver ends the dead relay, and takes that back, so that it can be done again.
func dayTakeOver(ctx context.Context, e *dayEnv) (took time.Duration, err error) {
	tx, err := e.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	return timed(func() error {
		ended, err := e.holders[0].EndExpired(ctx, tx)
		if err == nil && ended != 1 {
			err = fmt.Errorf("%d relays were ended, and one is dead", ended)
		}
		return err
	})
}

// times measures a step on both, in turns.
func (s dayStep) times(ctx context.Context, found *Step, fresh, aged *dayEnv, rounds int) error {
	subject := func(name string, e *dayEnv) bench.Subject {
		return bench.Subject{Name: name, Measure: func(ctx context.Context, _ bench.Block) (sample bench.Sample, err error) {
			if err := s.prepare(ctx, e); err != nil {
				return sample, err
			}
			sample.Latencies, err = s.repeat(ctx, e, dayBlock)
			return sample, err
		}}
	}
	turns, err := bench.Interleaver{Rounds: rounds}.Run(ctx, []bench.Subject{
		subject("fresh", fresh), subject("aged", aged), subject("fresh again", fresh),
	})
	if err != nil {
		return err
	}
	if found.Time, err = bench.Compare(turns, bench.Median, "aged", "fresh", "fresh again"); err != nil {
		return err
	}
	found.Same, err = bench.Compare(turns, bench.Median, "fresh again", "fresh")
	return err
}

func (s dayStep) prepare(ctx context.Context, e *dayEnv) error {
	if s.ready == nil {
		return nil
	}
	if err := s.ready(ctx, e); err != nil {
		return fmt.Errorf("pinned: %s: %w", s.name, err)
	}
	return nil
}

// repeat does the step so often, and returns how long each took, sorted.
func (s dayStep) repeat(ctx context.Context, e *dayEnv, times int) ([]time.Duration, error) {
	var all []time.Duration
	for range times {
		took, err := s.do(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("pinned: %s: %w", s.name, err)
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all, nil
}

// pages counts what the step looks at on both.
func (s dayStep) pages(ctx context.Context, fresh, aged *dayEnv) (Step, error) {
	found := Step{Name: s.name, Lookups: s.lookups}
	times := dayBlock
	if s.ready != nil {
		times = 1 // only the first is prepared
	}
	for e, pages := range map[*dayEnv]*float64{fresh: &found.Fresh, aged: &found.Aged} {
		if _, err := s.repeat(ctx, e, dayBlock); err != nil { // the first time a session looks up more
			return found, err
		}
		if err := s.prepare(ctx, e); err != nil {
			return found, err
		}
		if err := e.CountPages(ctx); err != nil {
			return found, err
		}
		if _, err := s.repeat(ctx, e, times); err != nil {
			return found, err
		}
		counted, err := e.PagesOf(ctx, s.text)
		if err != nil {
			return found, err
		}
		if counted.Calls != int64(times) {
			return found, fmt.Errorf("pinned: %s: the server has counted %d calls of %d", s.name, counted.Calls, times)
		}
		*pages = counted.Each(times)
	}
	return found, nil
}
