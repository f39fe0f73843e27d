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

// Run plays the plan and checks it. The histories stay in the plan's folder.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	plan.Doomed, plan.LostAcks = cmp.Or(plan.Doomed, 3), cmp.Or(plan.LostAcks, 3)
	for _, folder := range []string{curedFolder, outagesFolder} {
		if err := os.MkdirAll(filepath.Join(plan.Folder, folder), 0o700); err != nil {
			return nil, fmt.Errorf("torture: %w", err)
		}
	}
	env, err := OpenEnv(ctx, cmp.Or(plan.Run, NewRun()), plan.Postgres, plan.Broker)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Close()) }() //nolint:contextcheck // also after an interrupt
	if s, is := env.stage.(*pubSubStage); is && plan.Mutant != "" {
		s.without = quietMutant
	}
	pool, err := producersPool(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := env.fillThings(ctx, plan.Aggregates); err != nil {
		return nil, err
	}
	files, err := create(plan.Folder, producersFile, faultsFile)
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	r := &run{
		plan: plan, env: env, say: say, began: time.Now(),
		fleet: newFleet(plan, env), operators: newOperators(env, plan),
		producers: &producers{plan: plan, env: env, pool: pool, history: check.NewWriter(files[0])},
		faults:    check.NewWriter(files[1]),
	}
	return r.play(ctx)
}

// run is one run under way.
type run struct {
	plan      Plan
	env       *Env
	say       io.Writer
	began     time.Time
	fleet     *Fleet
	operators *operators
	producers *producers
	faults    *check.Writer
	drained   bool
	// produceTime is how long the producers took. The faults were the same for all, so it tells what this machine can do.
	produceTime   time.Duration
	injectionTime time.Duration // until all was healed: with more than was planned, if too little had come of it
	// drainTime is how long what was left took when all was healed, and backlog how much that was.
	drainTime time.Duration
	backlog   int
}

// play lets everybody do their part, and collects and checks what they did.
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
	topics := r.env.pipelined()
	end := check.End{Drained: r.drained, Dumped: true, Held: true, Pipelined: topics, Doubtful: topics}
	if err := r.faults.Add(check.Record{End: &end}); err != nil {
		return nil, err
	}
	c := &collector{env: r.env, operators: r.operators, folder: r.plan.Folder, forgetful: r.plan.Forgetful}
	if err := c.collect(ctx); err != nil {
		return nil, err
	}
	r.sayf("collected; checking")
	outcome := func(key string) (check.Outcome, error) { return r.outcome(ctx, key) }
	verdict, err := checkFolder(r.plan.Folder, r.plan.Floor(), outcome)
	if err != nil {
		return nil, err
	}
	var audited *audited
	if r.plan.Audit {
		r.sayf("checked; auditing")
		found, err := r.audit(ctx, c.deliveries)
		if err != nil {
			return nil, err
		}
		audited = &found
	}
	report, err := r.report(c, verdict, audited)
	if err == nil && r.plan.Forgetful {
		if report.Vanished, err = r.producers.promised.broken(ctx, r.env); err != nil {
			return nil, err
		}
	}
	return report, err
}

// outcome is what became of a transaction whose producer does not know it.
func (r *run) outcome(ctx context.Context, key string) (check.Outcome, error) {
	committed, err := r.env.Committed(ctx, key)
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

// gathered waits until every relay has registered: on a slow machine the schedule would otherwise be over before they
// start.
func (r *run) gathered(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, gathering,
		fmt.Errorf("torture: the relays have not started within %s", gathering))
	defer cancel()
	for {
		var alive int
		const names = "SELECT count(DISTINCT name) FROM {schema}.outbox_relays WHERE ended_at IS NULL"
		if err := r.env.Pool.QueryRow(ctx, r.env.SQL(names)).Scan(&alive); err != nil {
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

// act runs producers, faults and operators until everything is produced, healed and drained.
func (r *run) act(ctx context.Context) error {
	ring := outbox.RingPgx(r.producers.pool, r.env.Run)
	r.producers.bell = outbox.NewDoorbell(ring) //nolint:contextcheck // it ends with Close
	defer r.producers.bell.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	injecting, heal := context.WithCancel(ctx)
	defer heal()
	var others sync.WaitGroup
	operating, retire := context.WithCancel(ctx)
	defer retire()
	others.Go(func() { fail(cancel, r.operators.run(operating)) })
	faults := &injector{
		target: Target{Plan: r.plan, Env: r.env, Fleet: r.fleet, producers: r.producers}, faults: r.faults, sayf: r.sayf,
	}
	faults.wanting.Store(int64(len(r.plan.Schedule)))
	var injectors sync.WaitGroup
	injectors.Go(func() { fail(cancel, faults.run(injecting)) })
	injectors.Go(func() { r.progress(injecting, faults) })
	r.producers.more = func() bool { return r.tooLittle(faults) != "" }
	err := r.producers.run(ctx)
	r.produceTime = time.Duration(r.producers.reached.Load())
	r.sayf("%d events committed in %d transactions", r.producers.committed.Load(), r.producers.keys.Load())
	heal()
	injectors.Wait()
	r.env.forget()
	if err == nil {
		err = r.producers.endPrepared(ctx)
	}
	if err == nil {
		healed := time.Now()
		r.injectionTime = healed.Sub(r.producers.began)
		r.drained, err = r.drain(ctx)
		r.drainTime = time.Since(healed)
	}
	retire()
	others.Wait()
	r.env.forget()
	return errors.Join(err, context.Cause(ctx))
}

// longestOverrun is how much longer than planned faults are injected at most, because too little has come of it yet.
const longestOverrun = 5 * time.Minute

// tooLittle tells what must happen and has not, as the plan has it; nothing if all has. With a mutant it does not
// matter.
func (r *run) tooLittle(faults *injector) string {
	switch {
	case r.plan.Mutant != "" || time.Since(r.producers.began) > r.plan.Production+longestOverrun:
	case faults.wanting.Load() > 0:
		return fmt.Sprintf("more of %d kinds of faults", faults.wanting.Load())
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
func (r *run) progress(ctx context.Context, faults *injector) {
	for wait.For(ctx, progressEvery) == nil {
		done, passed := r.producers.committed.Load(), time.Since(r.began)
		left := r.plan.Production * time.Duration(max(0, int64(r.plan.Events)-done)) / time.Duration(r.plan.Events)
		rest := fmt.Sprintf("about %s left", left.Round(time.Second))
		if more := r.tooLittle(faults); left == 0 && more != "" {
			rest = "it goes on for " + more
		}
		r.sayf("%d of %d events, %.0f a second, %d faults; %s", done, r.plan.Events, float64(done)/passed.Seconds(),
			faults.injected.Load(), rest)
	}
}

// fail ends the run because of an error of one of its parts.
func fail(cancel context.CancelCauseFunc, err error) {
	if err != nil {
		cancel(err)
	}
}

// drain waits until no event is open and no dead one blocks, or until nothing has moved for as long as the plan allows:
// on a slow machine the rest takes longer, and is not stuck. Operators go on with what they have begun and decide about
// what dies, but ask for no more copies.
func (r *run) drain(ctx context.Context) (bool, error) {
	least, deadline := math.MaxInt, time.Now().Add(r.plan.Drain)
	for {
		var open int
		resting := r.operators.rest() // before the look, so that nothing is asked for behind it
		err := r.env.Pool.QueryRow(ctx,
			r.env.SQL(`SELECT (SELECT count(*) FROM {schema}.outbox_events WHERE state IN (0, 1)) + (
				SELECT count(*) FROM {schema}.outbox_requests
				 WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL)`)).Scan(&open)
		switch {
		case r.plan.Unsteady && interrupted(err) && ctx.Err() == nil: // the pool has connections from before
		case err != nil:
			return false, fmt.Errorf("torture: %w", err)
		case open == 0 && resting:
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
	// of no consequence
	_, _ = fmt.Fprintf(r.say, "%s: %5.1f s: %s\n", r.plan.Name, time.Since(r.began).Seconds(),
		fmt.Sprintf(format, args...))
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

func (e *Env) fillThings(ctx context.Context, count int) error {
	_, err := e.Pool.Exec(ctx, e.SQL(`INSERT INTO {schema}.torture_things (id)
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
