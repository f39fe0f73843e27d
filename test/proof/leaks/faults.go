package leaks

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// faults lets every fault happen once.
func (r *run) faults(ctx context.Context, round int) error {
	b := r.birds
	restartNATS := func(ctx context.Context) error {
		return errors.Join(r.nats.End(os.Kill), r.startNATS(ctx, b.natsPassword.Text))
	}
	for _, fault := range []struct {
		name   string
		inject func(context.Context) error
	}{
		{"the database is restarted", func(ctx context.Context) error { return r.database.Restart(ctx, cluster.Fast) }},
		{"the database crashes", func(ctx context.Context) error { return r.database.Restart(ctx, cluster.Immediate) }},
		{"NATS is restarted", restartNATS},
		{"NATS wants another password", func(ctx context.Context) error {
			if err := errors.Join(r.nats.End(os.Kill), r.startNATS(ctx, "another")); err != nil {
				return err
			}
			return errors.Join(r.standWithoutNATS(ctx), restartNATS(ctx))
		}},
		{"the database wants another password", func(ctx context.Context) error {
			if err := r.setPassword(ctx, "another"); err != nil {
				return err
			}
			return errors.Join(r.stand(ctx), r.setPassword(ctx, b.databasePassword.Text))
		}},
		{"NATS is away", func(ctx context.Context) error {
			if err := r.nats.End(os.Kill); err != nil {
				return err
			}
			return errors.Join(r.standWithoutNATS(ctx), r.startNATS(ctx, b.natsPassword.Text))
		}},
	} {
		if err := r.flows(ctx); err != nil {
			return fmt.Errorf("before %s: %w", fault.name, err)
		}
		r.sayf("round %d: %s", round+1, fault.name)
		if err := r.write(ctx, r.batch()...); err != nil {
			return err
		}
		if err := fault.inject(ctx); err != nil {
			return err
		}
		r.pool.Reset() // its connections may be gone
		r.report.Faults++
	}
	return nil
}

// batch is good events with a few bad and odd ones between them: not so many that their type is paused.
func (r *run) batch() []event {
	var list []event
	for i, bad := range r.birds.bad() {
		for n := range 4 {
			list = append(list, r.birds.good(4*i+n))
		}
		list = append(list, bad)
	}
	return append(list, r.birds.odd()...)
}

// stand lets a fault last until every publisher has told of it, twice in a row, and has been asked everything since
// then. It looks at what is stored meanwhile.
func (r *run) stand(ctx context.Context) error {
	for i, p := range r.programs {
		began := r.askers[i].circles.Load()
		err := eventually.Within(ctx, eventually.Patience, "a publisher has told of the fault", func() (bool, error) {
			asked, unready := r.askers[i].circles.Load()-began, r.askers[i].unready.Load()
			return asked > 2 && unready > 2 || !p.Alive(), nil // the circle under way had begun before
		})
		if err != nil {
			return err
		}
	}
	return r.columns(ctx)
}

// standWithoutNATS is stand with events that find nobody who takes them, so that the error of their route is stored.
func (r *run) standWithoutNATS(ctx context.Context) error {
	var list []event
	for n := range 20 { // of which either publisher gets enough to call the route broken
		list = append(list, r.birds.good(n))
	}
	if err := r.write(ctx, list...); err != nil {
		return err
	}
	err := eventually.Within(ctx, eventually.Patience, "the route's error is stored", func() (stored bool, err error) {
		err = r.pool.QueryRow(ctx,
			"SELECT EXISTS (SELECT FROM outbox_topics WHERE topic = 'leaks.orders' AND error <> '')").Scan(&stored)
		return stored, err
	})
	if err != nil {
		return err
	}
	return r.stand(ctx)
}

// flows waits until a good event comes through.
func (r *run) flows(ctx context.Context) error {
	before, err := r.arrived(ctx)
	if err != nil {
		return err
	}
	if err := r.write(ctx, r.birds.good(0)); err != nil {
		return err
	}
	return eventually.Within(ctx, eventually.Patience, "events flow", func() (bool, error) {
		now, err := r.arrived(ctx)
		return now > before, err
	})
}
