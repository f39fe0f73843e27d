package upgrade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
)

// finish stops producers, lets everything drain and be consumed, stops the rest, and has all checked.
func (r *run) finish(ctx context.Context) error {
	for _, side := range []*side{r.old, r.new} {
		if err := side.stopClient(ctx, "producer", side.producer); err != nil {
			return err
		}
	}
	var err error
	const open = "SELECT count(*) FROM {schema}.outbox_events WHERE state IN (0, 1)"
	r.report.Drained, err = r.settle(ctx, open, func() bool { return r.old.alive() || r.new.alive() })
	if err != nil {
		return err
	}
	const unhandled = `SELECT count(*) FROM {schema}.outbox_events e WHERE state = 6
		AND NOT EXISTS (SELECT FROM {schema}.upgrade_effects f WHERE f.event_id = e.id)`
	consumed, err := r.settle(ctx, unhandled, func() bool {
		return r.old.consumer != nil && r.old.consumer.Alive() || r.new.consumer != nil && r.new.consumer.Alive()
	})
	if err != nil {
		return err
	}
	r.sayf("drained=%t, consumed=%t", r.report.Drained, consumed)
	for _, side := range []*side{r.old, r.new} {
		if err := errors.Join(side.stopClient(ctx, "consumer", side.consumer), side.stopRelays(ctx)); err != nil {
			return err
		}
	}
	return r.examine(ctx)
}

// settle waits until the query counts none, and tells whether that happened. It ends also when nobody is left who could
// do it, and when nothing has moved for as long as the patience lasts.
func (r *run) settle(ctx context.Context, query string, alive func() bool) (bool, error) {
	for last, moved := -1, time.Now(); ; {
		left, err := r.count(ctx, query)
		if err != nil || left == 0 {
			return left == 0, err
		}
		if left != last {
			last, moved = left, time.Now()
		}
		if time.Since(moved) > r.plan.Patience || !alive() {
			return false, nil
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// examine ends the histories and has them checked.
func (r *run) examine(ctx context.Context) error {
	if err := r.writeHistory(); err != nil {
		return err
	}
	if err := r.writeEffects(ctx); err != nil {
		return err
	}
	if err := r.faults.Add(check.Record{
		End: &check.End{Drained: r.report.Drained, Dumped: true, Held: true, Effects: true},
	}); err != nil {
		return err
	}
	if _, err := r.torture.Collect(ctx, r.plan.Folder); err != nil {
		return err
	}
	committed := func(key string) (bool, error) { return r.torture.Committed(ctx, key) }
	var err error
	if r.report.Verdict, err = torture.Check(r.plan.Folder, r.plan.floor(), committed); err != nil {
		return err
	}
	for query, into := range map[string]*int{
		"SELECT count(*) FROM {schema}.outbox_dlq":                            &r.report.Dead,
		"SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0": &r.report.Charged,
		"SELECT schema_version FROM {schema}.outbox_meta":                     &r.report.Version,
	} {
		if *into, err = r.count(ctx, query); err != nil {
			return err
		}
	}
	letters, err := r.js.Stream(ctx, r.deadStream())
	if err != nil {
		return fmt.Errorf("upgrade: the stream of dead letters: %w", err)
	}
	r.report.GivenUp = int(letters.CachedInfo().State.Msgs)
	return nil
}

// floor is how much the checker must have seen.
func (p Plan) floor() check.Floor {
	return check.Floor{
		Committed: 6 * p.Each, OrderedAggregates: p.Things / 4, Faults: map[check.FaultKind]int{check.Kill: 2 * p.Kills},
	}
}

// line is one of a producer's history; see test/cmd/upgrade-client.
type line struct {
	Key    string `json:"key"`
	At     int64  `json:"at"`
	Events []struct {
		ID        outbox.ID         `json:"id"`
		Type      string            `json:"type"`
		Topic     string            `json:"topic"`
		Aggregate string            `json:"aggregate"`
		Version   uint64            `json:"version"`
		Payload   string            `json:"payload"`
		Headers   map[string]string `json:"headers"`
	} `json:"events"`
	Outcome check.Outcome `json:"outcome"`
}

// writeHistory puts what the producers of both sides wrote down into the checker's words.
func (r *run) writeHistory() error {
	file, err := os.Create(filepath.Join(r.plan.Folder, torture.ProducersFile))
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	defer file.Close() // all lines are written at once
	history := check.NewWriter(file)
	for _, side := range []*side{r.old, r.new} {
		if side.producer == nil {
			continue
		}
		written, err := r.readHistory(side.history, history)
		if err != nil {
			return err
		}
		if side == r.old {
			r.report.OldEmitted = written
		} else {
			r.report.NewEmitted = written
		}
	}
	return nil
}

// readHistory copies a producer's history, and counts the events of transactions that committed on the new schema.
func (r *run) readHistory(name string, to *check.Writer) (written int, err error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, fmt.Errorf("upgrade: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	events := map[string]int{}
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return 0, fmt.Errorf("upgrade: %s: %w", name, err)
		}
		tx := check.Tx{Key: l.Key, Outcome: l.Outcome}
		for _, e := range l.Events {
			event := check.Event{
				ID: e.ID, Type: e.Type, Topic: e.Topic, Aggregate: e.Aggregate, Key: e.Aggregate, Version: e.Version,
				Payload: check.SumOf([]byte(e.Payload)),
			}
			if len(e.Headers) > 0 {
				text, err := json.Marshal(e.Headers) // sorted by name
				if err != nil {
					return 0, fmt.Errorf("upgrade: %w", err)
				}
				event.Headers = check.SumOf(text)
			}
			tx.Events = append(tx.Events, event)
		}
		events[l.Key] += len(tx.Events)
		if l.Outcome == check.OK && !r.migrated.IsZero() && l.At > r.migrated.UnixMicro() {
			written += events[l.Key]
		}
		if err := to.Add(check.Record{Tx: &tx}); err != nil {
			return 0, err
		}
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("upgrade: %s: %w", name, err)
	}
	return written, nil
}

// writeEffects tells the checker what the consumers did, and counts what each side did on the new schema.
func (r *run) writeEffects(ctx context.Context) error {
	rows, err := r.torture.Pool.Query(ctx, r.torture.SQL("SELECT event_id, by, at FROM {schema}.upgrade_effects"))
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	type effect struct {
		Event outbox.ID
		By    string
		At    time.Time
	}
	effects, err := pgx.CollectRows(rows, pgx.RowToStructByPos[effect])
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	for _, e := range effects {
		if err := r.faults.Add(check.Record{Effect: &check.Effect{ID: e.Event, Count: 1}}); err != nil {
			return err
		}
		if r.migrated.IsZero() || e.At.Before(r.migrated) {
			continue
		}
		if e.By == r.old.name {
			r.report.OldHandled++
		} else {
			r.report.NewHandled++
		}
	}
	return nil
}
