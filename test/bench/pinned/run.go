package pinned

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/posthaste-dev/posthaste/relay"
)

// run is one run under way.
type run struct {
	plan     Plan
	db       *database
	say      io.Writer
	began    time.Time
	newRelay func(relay.Config) (Runner, error)
	phases   uint8
}

// Run compares what relays do before and after a day of beats under a held snapshot. Then it measures an unpinned
// stretch, one under a held snapshot and one behind an open writer, and each of the last two once more without the
// watermark.
func Run(ctx context.Context, plan Plan, newRelay func(relay.Config) (Runner, error),
	say io.Writer,
) (_ *Report, err error) {
	db, err := newDatabase(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	r := &run{plan: plan, db: db, say: say, began: time.Now(), newRelay: newRelay}
	report := &Report{}
	if report.Capacity, err = r.capacity(ctx); err != nil {
		return nil, err
	}
	if report.Day, err = r.day(ctx); err != nil {
		return nil, err
	}
	r.plan = plan.On(report.Capacity)
	report.Plan = r.plan
	r.sayf("the machine moves %.0f events/s; the load is %d", report.Capacity, r.plan.Rate)
	if report.Unpinned, err = r.unpinned(ctx); err != nil {
		return nil, err
	}
	if report.Snapshot, report.SnapshotControl, err = r.underSnapshot(ctx); err != nil {
		return nil, err
	}
	if err := r.cleanUp(ctx); err != nil {
		return nil, err
	}
	if report.Writer, report.WriterControl, report.Own, err = r.behindWriter(ctx); err != nil {
		return nil, err
	}
	report.Took = time.Since(r.began)
	return report, nil
}

func (r *run) sayf(format string, args ...any) {
	// An error here is of no consequence.
	_, _ = fmt.Fprintf(r.say, "bench-pinned: %5.1f s: %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) unpinned(ctx context.Context) (*Phase, error) {
	r.sayf("unpinned, %s", r.plan.Length)
	return r.measure(ctx, phase{name: "unpinned", length: r.plan.Length})
}

// underSnapshot holds a snapshot and measures with and without the watermark.
func (r *run) underSnapshot(ctx context.Context) (found, control *Phase, err error) {
	held, err := r.db.snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, held.close()) }()
	low, err := r.db.lastNumber(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := r.die(ctx); err != nil {
		return nil, nil, err
	}
	high, err := r.db.lastNumber(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := r.db.setFloors(ctx, high); err != nil {
		return nil, nil, err
	}
	r.sayf("under a held snapshot, %s", r.plan.Length)
	if found, err = r.measure(ctx, phase{name: "snapshot", length: r.plan.Length}); err != nil {
		return nil, nil, err
	}
	// Without a watermark nobody knows where to begin but where the snapshot found the lanes.
	if err := r.db.setFloors(ctx, low); err != nil {
		return nil, nil, err
	}
	r.sayf("the same without the watermark, %s", r.plan.Control)
	control, err = r.measure(ctx, phase{name: "snapshot_control", length: r.plan.Control, noWatermark: true})
	return found, control, err
}

// die makes the dead tuples of the short form.
func (r *run) die(ctx context.Context) error {
	if r.plan.Dead == 0 {
		return nil
	}
	r.sayf("making %d dead tuples", r.plan.Dead)
	return r.db.makeDead(ctx, r.plan.Dead, r.plan.Aggregates, func(n int) {
		if n%250_000 == 0 {
			r.sayf("%d are dead", n)
		}
	})
}

// cleanUp lets the next kind begin as the first did.
func (r *run) cleanUp(ctx context.Context) error {
	if err := r.settleLeft(ctx); err != nil {
		return err
	}
	r.sayf("vacuum")
	if err := r.db.Exec(ctx, "VACUUM ANALYZE public.outbox_events"); err != nil {
		return err
	}
	if r.plan.Timed { // the next phase shall not pay for it
		if err := r.db.Exec(ctx, "CHECKPOINT"); err != nil {
			return err
		}
	}
	high, err := r.db.lastNumber(ctx)
	if err != nil {
		return err
	}
	return r.db.setFloors(ctx, high)
}

// settleLeft settles what a control left behind, so that the next phase measures itself.
func (r *run) settleLeft(ctx context.Context) error {
	_, err := r.db.Control.Exec(ctx, statement("settle_dead"), 0)
	return err
}

// behindWriter keeps a transaction open that wrote an event, and measures with and without the watermark.
func (r *run) behindWriter(ctx context.Context) (found, control *Phase, outcome Own, err error) {
	low, err := r.db.lastNumber(ctx)
	if err != nil {
		return nil, nil, outcome, err
	}
	w := &writer{run: r}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(ctx); err != nil {
		return nil, nil, outcome, err
	}
	if err := r.die(ctx); err != nil {
		return nil, nil, outcome, err
	}
	// The writer's number is still undecided, so no relay could have raised a floor above it.
	if err := r.db.setFloors(ctx, low); err != nil {
		return nil, nil, outcome, err
	}
	r.sayf("without the watermark, behind an open writer, %s", r.plan.Control)
	if control, err = r.measure(ctx,
		phase{name: "writer_control", length: r.plan.Control, noWatermark: true}); err != nil {
		return nil, nil, outcome, err
	}
	if err := r.settleLeft(ctx); err != nil {
		return nil, nil, outcome, err
	}
	r.sayf("behind an open writer, %s", r.plan.Length)
	found, err = r.measure(ctx, phase{
		name: "writer", length: r.plan.Length, after: func(ctx context.Context, t *tape) error {
			var err error
			outcome, err = w.finish(ctx, t)
			return err
		},
	})
	return found, control, outcome, err
}
