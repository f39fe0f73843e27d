package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Plan is what is run, and how much of it.
type Plan struct {
	// Old is the commit of OldPrograms, and NewPrograms those of the working tree.
	Old                      Old
	OldPrograms, NewPrograms Programs
	// Outbox and Inbox are what both have of the migrations.
	Outbox, Inbox Migrations
	// Start is the version of the outbox at which the run begins. Defaults to the last one that both know.
	Start int
	// Postgres and NATS are the servers; Folder takes histories and logs.
	Postgres, NATS, Folder string

	// Each is how many events each side must publish in each leg that it takes part in.
	Each int
	// Rate is how many transactions each producer writes in a second, about so many Things.
	Rate, Things int
	// Kills is how often one relay of each side is killed while both run.
	Kills int
	Lease time.Duration
	// Patience is how long nothing may happen that must, once the schema is migrated.
	Patience time.Duration
	// Fault is SQL that is run after the migration, to see the proof fail.
	Fault string
}

// Long is the whole proof.
func Long() Plan {
	return Plan{
		Each: 3000, Rate: 200, Things: 500, Kills: 5, Lease: 12 * time.Second, Patience: eventually.Patience,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{
		Each: 200, Rate: 60, Things: 100, Kills: 1, Lease: 12 * time.Second, Patience: eventually.Patience,
	}
}

// start is the version at which a set of migrations begins.
func (p Plan) start(m Migrations) int {
	if p.Start != 0 {
		return min(p.Start, m.Shared)
	}
	return m.Shared
}

// relays are how many run at a time on each side.
const relays = 2

// run is one run under way.
type run struct {
	*env
	old, new *side
	faults   *check.Writer
	report   *Report
	migrated time.Time
	sayf     func(format string, args ...any)
}

// errMissed ends the legs: one did not come to what it must.
var errMissed = errors.New("a leg was missed")

// Run plays the legs and checks what came of them.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	began := time.Now()
	report := &Report{plan: plan}
	r := &run{report: report, sayf: func(format string, args ...any) {
		// An error here is of no consequence.
		_, _ = fmt.Fprintf(say, "proof-upgrade: %5.1f s: %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	if r.env, err = newEnv(ctx, plan); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	file, err := os.Create(filepath.Join(plan.Folder, torture.FaultsFile))
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	defer file.Close() // all lines are written at once
	r.faults = check.NewWriter(file)
	r.old, r.new = newSide(r.env, "old", plan.OldPrograms, report), newSide(r.env, "new", plan.NewPrograms, report)
	defer r.old.kill()
	defer r.new.kill()
	switch err := r.legs(ctx); {
	case errors.Is(err, errMissed) && r.migrated.IsZero(): // there is nothing to compare with
		return nil, fmt.Errorf("upgrade: before the migration: %w: %s", err, r.lastWords())
	case err != nil && !errors.Is(err, errMissed):
		return nil, err
	}
	if err := r.finish(ctx); err != nil {
		return nil, err
	}
	report.Seconds = time.Since(began).Seconds()
	return report, nil
}

// legs are what is done, in order.
func (r *run) legs(ctx context.Context) error {
	start := r.plan.start(r.plan.Outbox)
	r.sayf("the schema is at version %d, the old programs know %d and the new ones %d; roles are granted: %t", start,
		r.plan.Outbox.Old, r.plan.Outbox.New, r.granted)
	for _, leg := range []func(context.Context) error{
		r.newOnOld, r.oldOnOld, r.oldOnNew, r.sideBySide, r.newAlone, r.takenBack,
	} {
		if err := leg(ctx); err != nil {
			return err
		}
	}
	return nil
}

// newOnOld: a new publisher works with the old schema, or refuses to start with a clear word.
func (r *run) newOnOld(ctx context.Context) (err error) {
	r.report.Rejection, err = r.rejected(ctx, relay.SchemaVersion-1, relay.SchemaVersion, eventually.Patience)
	if err != nil {
		return err
	}
	if err := errors.Join(r.old.startProducer(), r.old.startConsumer()); err != nil {
		return err
	}
	if r.plan.start(r.plan.Outbox) < relay.SchemaVersion {
		return nil // as was just seen
	}
	if err := r.new.startRelays(ctx, 1); err != nil {
		return err
	}
	if err := r.reach(ctx, "new_on_old", r.new); err != nil {
		return err
	}
	return r.new.stopRelays(ctx)
}

func (r *run) oldOnOld(ctx context.Context) error {
	if err := r.old.startRelays(ctx, relays); err != nil {
		return err
	}
	return r.reach(ctx, "old_on_old", r.old)
}

// oldOnNew: the schema is migrated under load, and nothing else is new but a producer and a consumer.
func (r *run) oldOnNew(ctx context.Context) error {
	r.sayf("migrating under load")
	began := time.Now()
	if err := r.migrate(ctx); err != nil {
		return err
	}
	r.migrated = time.Now()
	r.report.Migration = r.migrated.Sub(began)
	r.sayf("migrated in %d ms", r.report.Migration.Milliseconds())
	if err := errors.Join(r.new.startProducer(), r.new.startConsumer()); err != nil {
		return err
	}
	return r.reach(ctx, "old_on_new", r.old)
}

// sideBySide: the new relays join, and some of both are killed and started again.
func (r *run) sideBySide(ctx context.Context) error {
	if err := r.new.startRelays(ctx, relays); err != nil {
		return err
	}
	if err := r.reach(ctx, "beside", r.old, r.new); err != nil {
		return err
	}
	for range r.plan.Kills {
		for _, side := range []*side{r.old, r.new} {
			if err := errors.Join(side.killRelay(ctx, r.faults), side.startRelay(ctx)); err != nil {
				return err
			}
			r.report.Kills++
		}
	}
	r.sayf("%d relays were killed and started again", r.report.Kills)
	return r.reach(ctx, "after_kills", r.old, r.new)
}

func (r *run) newAlone(ctx context.Context) error {
	if err := r.old.stopRelays(ctx); err != nil {
		return err
	}
	return r.reach(ctx, "new_alone", r.new)
}

// takenBack: a deploy is taken back under load. The schema stays, and the old outboxctl reads it.
func (r *run) takenBack(ctx context.Context) error {
	if err := r.old.startRelays(ctx, relays); err != nil {
		return err
	}
	if err := r.new.stopRelays(ctx); err != nil {
		return err
	}
	if err := r.reach(ctx, "taken_back", r.old); err != nil {
		return err
	}
	if _, err := r.operate(ctx, r.plan.OldPrograms.Operator, "status"); err != nil {
		r.report.problemf("the old outboxctl cannot read the new schema: %v", err)
	}
	return nil
}

// lastWords is the end of what the relays have said that run.
func (r *run) lastWords() string {
	var said []string
	for _, side := range []*side{r.old, r.new} {
		for name, relay := range side.relays {
			said = append(said, name+": "+relay.LastWords())
		}
	}
	return strings.Join(said, "\n")
}

// reach waits until each of the sides has published enough from now on.
func (r *run) reach(ctx context.Context, name string, sides ...*side) error {
	mark, err := r.count(ctx, "SELECT coalesce(max(n), 0) FROM {schema}.upgrade_published")
	if err != nil {
		return err
	}
	patience := r.plan.Patience
	if r.migrated.IsZero() {
		patience = eventually.Patience
	}
	for _, side := range sides {
		leg := Leg{Name: name, Side: side.name, Want: r.plan.Each}
		err := eventually.Within(ctx, patience, "enough is published", func() (bool, error) {
			leg.Events, err = r.count(ctx, "SELECT count(*) FROM {schema}.upgrade_published WHERE n > $1 AND by LIKE $2", mark,
				side.name+"-%")
			if err != nil || leg.Events >= leg.Want || !side.alive() || !r.old.producer.Alive() {
				return true, err
			}
			return false, wait.For(ctx, 40*time.Millisecond)
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("upgrade: %w", err)
		}
		r.report.Legs = append(r.report.Legs, leg)
		r.sayf("%s: %s relays have published %d events", strings.ReplaceAll(name, "_", " "), side.name, leg.Events)
		if leg.Events < leg.Want {
			return errMissed
		}
	}
	return nil
}
