package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
)

// Run plays the plan and judges it. The histories stay in the plan's folder.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	plan.Doomed, plan.LostAcks = cmp.Or(plan.Doomed, 3), cmp.Or(plan.LostAcks, 3)
	for _, folder := range []string{curedFolder, outagesFolder} {
		if err := os.MkdirAll(filepath.Join(plan.Folder, folder), 0o700); err != nil {
			return nil, fmt.Errorf("torture: %w", err)
		}
	}
	w, err := OpenWorld(ctx, cmp.Or(plan.Run, NewRun()), plan.Postgres, plan.Broker)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }() //nolint:contextcheck // also after an interrupt
	if s, is := w.stage.(*pubSubStage); is && plan.Plant != "" {
		s.without = quietPlanted
	}
	pool, err := producersPool(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := w.fillThings(ctx, plan.Aggregates); err != nil {
		return nil, err
	}
	files, err := create(plan.Folder, producersFile, faultsFile)
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	r := &run{
		plan: plan, world: w, say: say, began: time.Now(),
		fleet: newFleet(plan, w), operators: newOperators(w, plan),
		producers: &producers{plan: plan, world: w, pool: pool, history: check.NewWriter(files[0])},
		faults:    check.NewWriter(files[1]),
	}
	return r.play(ctx)
}

// run is one run under way.
type run struct {
	plan      Plan
	world     *World
	say       io.Writer
	began     time.Time
	fleet     *Fleet
	operators *operators
	producers *producers
	faults    *check.Writer
	drained   bool
	// produceTime is how long the producers took. The storm was the same for all, so it tells what this machine can do.
	produceTime time.Duration
	stormTime   time.Duration // until all was healed: with more than was planned, if too little had come of it
	// drainTime is how long what was left took when all was healed, and backlog how much that was.
	drainTime time.Duration
	backlog   int
}

// play lets everybody do their part, and collects and judges what they did.
func (r *run) play(ctx context.Context) (*Report, error) {
	defer r.fleet.killAll()
	if err := r.fleet.startAll(ctx); err != nil {
		return nil, err
	}
	if err := r.gathered(ctx); err != nil {
		return nil, err
	}
	if err := r.act(ctx); err != nil {
		return nil, err
	}
	r.sayf("drained=%t, stopping the relays", r.drained)
	if err := r.fleet.leaveAll(); err != nil {
		return nil, err
	}
	end := check.End{Drained: r.drained, Dumped: true, Pipelined: r.world.pipelined()}
	if err := r.faults.Add(check.Record{End: &end}); err != nil {
		return nil, err
	}
	c := &collector{world: r.world, operators: r.operators, folder: r.plan.Folder, forgetful: r.plan.Forgetful}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	r.sayf("collected; judging")
	outcome := func(key string) (check.Outcome, error) { return r.outcome(ctx, key) }
	verdict, err := judge(r.plan.Folder, r.plan.Floor(), outcome)
	if err != nil {
		return nil, err
	}
	report, err := r.report(c, verdict)
	if err == nil && r.plan.Forgetful {
		if report.Vanished, err = r.producers.promised.broken(ctx, r.world); err != nil {
			return nil, err
		}
	}
	return report, err
}

// outcome is what became of a transaction of which its producer does not know it.
func (r *run) outcome(ctx context.Context, key string) (check.Outcome, error) {
	committed, err := r.world.Committed(ctx, key)
	switch {
	case committed:
		return check.OK, err
	case r.plan.Durable != nil && r.plan.Durable(key):
		return check.Undone, err
	default:
		return check.Failed, err
	}
}

// gathering ends a run whose relays cannot start.
const gathering = 3 * time.Minute

// gathered waits until every relay has registered: on a slow machine the storm would otherwise be over before they start.
func (r *run) gathered(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gathering, fmt.Errorf("torture: the relays have not started within %s", gathering))
	defer cancel()
	for {
		var alive int
		if err := r.world.Pool.QueryRow(ctx, r.world.SQL("SELECT count(*) FROM {schema}.outbox_relays")).Scan(&alive); err != nil {
			return fmt.Errorf("torture: %w", cmp.Or(context.Cause(ctx), err))
		}
		if alive >= r.plan.Relays || r.fleet.allEnded() {
			return nil
		}
		if wait.For(ctx, 20*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// act runs producers, storm and operators until everything is produced, healed and drained.
func (r *run) act(ctx context.Context) error {
	r.producers.bell = outbox.NewDoorbell(outbox.RingPgx(r.producers.pool, r.world.Run)) //nolint:contextcheck // it ends with Close
	defer r.producers.bell.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calm, heal := context.WithCancel(ctx)
	defer heal()
	var others sync.WaitGroup
	operating, retire := context.WithCancel(ctx)
	defer retire()
	others.Go(func() { fail(cancel, r.operators.run(operating)) })
	weather := &storm{target: Target{Plan: r.plan, World: r.world, Fleet: r.fleet, producers: r.producers}, faults: r.faults, sayf: r.sayf}
	weather.wanting.Store(int64(len(r.plan.Storm)))
	var raging sync.WaitGroup
	raging.Go(func() { fail(cancel, weather.run(calm)) })
	raging.Go(func() { r.progress(calm, weather) })
	r.producers.more = func() bool { return r.tooLittle(weather) != "" }
	err := r.producers.run(ctx)
	r.produceTime = time.Duration(r.producers.reached.Load())
	r.sayf("%d events committed in %d transactions", r.producers.committed.Load(), r.producers.keys.Load())
	heal()
	raging.Wait()
	r.world.forget()
	if err == nil {
		err = r.producers.endPrepared(ctx)
	}
	if err == nil {
		healed := time.Now()
		r.stormTime = healed.Sub(r.producers.began)
		r.drained, err = r.drain(ctx)
		r.drainTime = time.Since(healed)
	}
	retire()
	others.Wait()
	r.world.forget()
	return errors.Join(err, context.Cause(ctx))
}

// longestStorm is how much longer than planned a storm goes on at most, because too little has come of it yet.
const longestStorm = 5 * time.Minute

// tooLittle tells what must happen and has not, as the plan has it; nothing if all has. With a planted bug it does not matter.
func (r *run) tooLittle(weather *storm) string {
	switch {
	case r.plan.Plant != "" || time.Since(r.producers.began) > r.plan.Production+longestStorm:
	case weather.wanting.Load() > 0:
		return fmt.Sprintf("more of %d kinds of faults", weather.wanting.Load())
	case r.plan.Thorough && r.operators.idle():
		return "more for operators to do"
	case r.plan.Thorough && r.producers.tame():
		return "more transactions that are held or rolled back"
	}
	return ""
}

// progressEvery is how often is said how far the run has come.
const progressEvery = 5 * time.Second

// progress says how far the producers are, and how long they need for the rest.
func (r *run) progress(ctx context.Context, weather *storm) {
	for wait.For(ctx, progressEvery) == nil {
		done, passed := r.producers.committed.Load(), time.Since(r.began)
		left := r.plan.Production * time.Duration(max(0, int64(r.plan.Events)-done)) / time.Duration(r.plan.Events)
		rest := fmt.Sprintf("about %s left", left.Round(time.Second))
		if more := r.tooLittle(weather); left == 0 && more != "" {
			rest = "it goes on for " + more
		}
		r.sayf("%d of %d events, %.0f a second, %d faults; %s", done, r.plan.Events, float64(done)/passed.Seconds(), weather.fallen.Load(), rest)
	}
}

// fail ends the run because of an error of one of its parts.
func fail(cancel context.CancelCauseFunc, err error) {
	if err != nil {
		cancel(err)
	}
}

// drain waits until no event is open and no dead one blocks, or until nothing has moved for as long as the plan allows:
// on a slow machine the rest takes longer, and is not stuck. Operators go on meanwhile.
func (r *run) drain(ctx context.Context) (bool, error) {
	least, deadline := math.MaxInt, time.Now().Add(r.plan.Drain)
	for {
		var open int
		err := r.world.Pool.QueryRow(ctx, r.world.SQL("SELECT count(*) FROM {schema}.outbox_events WHERE state IN (0, 1, 2, 3, 4)")).Scan(&open)
		switch {
		case r.plan.Unsteady && interrupted(err) && ctx.Err() == nil: // the pool has connections from before
		case err != nil:
			return false, fmt.Errorf("torture: %w", err)
		case open == 0:
			return true, nil
		case open < least:
			least, deadline = open, time.Now().Add(r.plan.Drain)
			r.backlog = max(r.backlog, open)
		case r.fleet.allEnded():
			return false, nil // there is nobody left to drain
		case time.Now().After(deadline):
			r.sayf("%d events are open, and for %s none has moved", open, r.plan.Drain)
			return true, nil // the relays had the time to finish: what is open now is stuck
		}
		if err := wait.For(ctx, 200*time.Millisecond); err != nil {
			return false, err
		}
	}
}

func (r *run) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.say, "%s: %5.1f s: %s\n", r.plan.Name, time.Since(r.began).Seconds(), fmt.Sprintf(format, args...)) // of no consequence
}

func producersPool(ctx context.Context, plan Plan) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(cmp.Or(plan.ProducersVia, plan.Postgres))
	if err != nil {
		return nil, fmt.Errorf("torture: the producers' way to the database: %w", err)
	}
	config.MaxConns = int32(plan.Producers + 2) // one for the doorbell, one for transactions that are left open
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("torture: %w", err)
	}
	return pool, nil
}

func (w *World) fillThings(ctx context.Context, count int) error {
	_, err := w.Pool.Exec(ctx, w.SQL(`INSERT INTO {schema}.torture_things (id)
		SELECT 'thing-' || n FROM generate_series(0, $1 - 1) n
		UNION ALL SELECT 'prepared-' || n FROM generate_series(0, $2 - 1) n`), count, preparedThings)
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	return nil
}

func create(folder string, names ...string) ([]*os.File, error) {
	var files []*os.File
	for _, name := range names {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("torture: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close() // all lines are written at once
	}
}
