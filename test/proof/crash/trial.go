package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// drainTime is the plans' own.
const drainTime = 45 * time.Second

// lease is so long that a machine which is busy, or stands still for a moment, cannot outlast it: a relay that loses
// its lanes does not come to its point. Nobody waits for its end, for the trial ends that of a dead relay. Points at a
// beat are why it is no longer: there is one in every third of it. Those who are asked to stop give their lanes back,
// so theirs is longer: a publish that is given up, after a third of it, is one that comes twice.
const lease, leaseOfStops = 15 * time.Second, time.Minute

// Outcome is what a trial came to.
type Outcome struct {
	Point string
	// Hit tells that the victim died at the point.
	Hit     bool
	Verdict *check.Verdict
	// Problems are what the checker cannot see, each in a sentence.
	Problems []string
	// Folder has the histories.
	Folder  string
	Kills   int
	Seconds float64
	// Stops is how many relays were asked to stop, Poisoned how many died of one event, in the trials of those.
	Stops, Poisoned int
}

// OK tells whether nothing was broken, and the point was reached.
func (o *Outcome) OK() bool {
	return o.Hit && o.Verdict != nil && o.Verdict.Pass() && len(o.Problems) == 0
}

// trial is one point under test.
type trial struct {
	plan     Plan
	name     string // the point's, or an extra's
	point    crash.Description
	setting  setting
	hook     hook // of a point on the server
	folder   string
	env      *torture.Env
	history  *check.Writer
	faults   *check.Writer
	children []*child
	outcome  Outcome

	lastLetter int64
	decided    int
	batches    int // of events that this process has written
	written    int // transactions of these
	files      []*os.File
}

// newTrial prepares the trial of a point.
func newTrial(plan Plan, point string) (*trial, error) {
	description, known := describe(point)
	if !known && point != Stops && point != Poison {
		return nil, fmt.Errorf("crash: no point is called %q", point)
	}
	t := &trial{
		plan: plan, name: point, point: description, setting: settingOf(point), hook: hooks[point],
		folder: filepath.Join(plan.Folder, point),
	}
	t.outcome = Outcome{Point: point, Folder: t.folder}
	if err := os.MkdirAll(filepath.Join(t.folder, curedFolder), 0o700); err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	return t, nil
}

// run is the trial from its env's beginning to its end.
func (t *trial) run(ctx context.Context) (_ *Outcome, err error) {
	began := time.Now()
	defer t.end(&err)
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	if err := t.play(ctx); err != nil {
		return nil, err
	}
	if err := t.examine(ctx); err != nil {
		return nil, err
	}
	t.outcome.Seconds = time.Since(began).Seconds()
	return &t.outcome, nil
}

// end removes everything but the histories.
func (t *trial) end(err *error) {
	for _, p := range t.children {
		p.Kill()
	}
	for _, file := range t.files {
		_ = file.Close() // all lines are written at once
	}
	if t.env != nil {
		*err = errors.Join(*err, t.env.Close())
	}
}

// open makes the env, and lets the migrator die in it, if that is who dies.
func (t *trial) open(ctx context.Context) error {
	producers, err := appendTo(t.folder, torture.ProducersFile)
	if err != nil {
		return err
	}
	faults, err := appendTo(t.folder, torture.FaultsFile)
	if err != nil {
		return err
	}
	t.files = []*os.File{producers, faults}
	t.history, t.faults = check.NewWriter(producers), check.NewWriter(faults)
	run := torture.NewRun()
	if t.setting.victim == migrates {
		if err := t.sacrifice(ctx, run, task{Role: migrates}); err != nil {
			return err
		}
	}
	t.env, err = torture.OpenEnv(ctx, run, t.plan.Postgres, t.plan.Broker)
	return err
}

// play is the trial from the first event to the last relay's end.
func (t *trial) play(ctx context.Context) error {
	var successor *child
	var err error
	switch t.setting.victim {
	case nobody:
		successor, err = t.extra(ctx)
	case relays:
		if err = t.relayDies(ctx); err == nil {
			successor, err = t.start(task{Role: relays}, "")
		}
	case produces:
		successor, err = t.producerDies(ctx)
	case operates:
		successor, err = t.operatorDies(ctx)
	case migrates:
		if err = t.produce(ctx, t.plan.Events); err == nil {
			successor, err = t.start(task{Role: relays}, "")
		}
	}
	if err != nil {
		return err
	}
	drained, err := t.drain(ctx, successor)
	if err != nil {
		return err
	}
	if !successor.Alive() {
		t.problemf("%s ended by itself: %v: %s", successor.task.Name, successor.Err(), successor.LastWords())
	} else if err := successor.leave(ctx); err != nil {
		t.problemf("%v", err)
	}
	return t.faults.Add(check.Record{End: &check.End{Drained: drained, Dumped: true, Held: true}})
}

// start starts a process, under a name that no other has.
func (t *trial) start(l task, point string) (*child, error) {
	if l.Run == "" {
		l.Run = t.env.Run
	}
	l.Name = string(l.Role) + "-" + strconv.Itoa(len(t.children)+1)
	l.Database, l.Broker, l.Folder, l.Lease = t.plan.Postgres, t.plan.Broker, t.folder, lease
	if t.name == Stops {
		l.Lease = leaseOfStops
	}
	p, err := start(t.plan.Executable, l, point, t.hitFile(), t.plan.Environment)
	if err != nil {
		return nil, err
	}
	t.children = append(t.children, p)
	return p, nil
}

func (t *trial) hitFile() string { return filepath.Join(t.folder, "hit") }

// produce writes events in this process.
func (t *trial) produce(ctx context.Context, events int) error {
	t.batches++
	p := &producer{
		run: t.env.Run, name: fmt.Sprintf("proof-%d", t.batches), pool: t.env.Pool, contracts: newContracts(t.env.Run),
		history:  t.history,
		poisoned: (t.setting.suspect || t.name == Poison) && t.batches == 1, before: t.written,
	}
	err := p.produce(ctx, events)
	t.written += p.count
	return err
}

// await polls a condition, for as long as the process runs.
func (t *trial) await(ctx context.Context, limit time.Duration, p *child, condition string) error {
	for deadline := time.Now().Add(limit); ; {
		rows, err := t.env.Pool.Query(ctx, t.env.SQL(condition))
		if err != nil {
			return fmt.Errorf("crash: %w", err)
		}
		met := false
		for rows.Next() {
			if err := rows.Scan(&met); err != nil {
				return fmt.Errorf("crash: %w", err)
			}
		}
		switch {
		case rows.Err() != nil:
			return fmt.Errorf("crash: %w", rows.Err())
		case met:
			return nil
		case !p.Alive() || time.Now().After(deadline):
			t.problemf("%s did not get so far that the trial could begin: %s", p.task.Name, p.LastWords())
			return nil
		}
		if err := wait.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// drain decides about the dead and waits until nothing is open. False: there is nobody left to drain.
func (t *trial) drain(ctx context.Context, p *child) (bool, error) {
	for least, moved := -1, time.Now(); ; {
		if err := t.decide(ctx); err != nil {
			return false, err
		}
		var open int
		err := t.env.Pool.QueryRow(ctx,
			t.env.SQL(`SELECT (SELECT count(*) FROM {schema}.outbox_events WHERE state IN (0, 1)) + (
				SELECT count(*) FROM {schema}.outbox_requests
				 WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL)`)).Scan(&open)
		switch {
		case err != nil:
			return false, fmt.Errorf("crash: %w", err)
		case open == 0:
			return true, nil
		case !p.Alive():
			return false, nil
		case least < 0 || open < least:
			least, moved = open, time.Now()
		case time.Since(moved) > t.plan.Drain:
			return true, nil // it had the time to finish: what is open now is stuck
		}
		if err := wait.For(ctx, 25*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// examine collects the histories and checks them.
func (t *trial) examine(ctx context.Context) error {
	unwitnessed, err := t.env.Collect(ctx, t.folder)
	if err != nil {
		return err
	}
	if unwitnessed > 0 {
		t.problemf("%d settles count as applied, and no row changed", unwitnessed)
	}
	floor := check.Floor{Committed: t.plan.Events - eventsOfATransaction, OrderedAggregates: things}
	if t.point.Name != "" {
		floor.Points = []string{t.point.Name}
	}
	if t.setting.duplicates {
		floor.Duplicates = 1
	}
	t.outcome.Verdict, err = torture.Check(t.folder, floor, func(key string) (bool, error) {
		return t.env.Committed(ctx, key)
	})
	if err == nil && t.name == Stops && t.outcome.Verdict.Count(check.Duplicates) > 0 {
		t.problemf("%d events came twice, and nobody died", t.outcome.Verdict.Count(check.Duplicates))
	}
	return err
}

func (t *trial) problemf(format string, args ...any) {
	t.outcome.Problems = append(t.outcome.Problems, fmt.Sprintf(format, args...))
}
