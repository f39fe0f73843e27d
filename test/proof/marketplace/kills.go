package marketplace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// injections kills processes, one kind after the other, and starts them again, until it is enough or ctx ends. What it
// has begun it finishes.
func (r *round) injections(ctx context.Context, enough func() (bool, error)) error {
	dice := rand.New(rand.NewPCG(1, 1))
	for i := 0; wait.For(ctx, r.plan.Every) == nil; i++ {
		if done, err := enough(); err != nil || done {
			return err
		}
		kind := Kinds[(i+len(Kinds)-1)%len(Kinds)] // workers first: their kills at the commit are wanted most
		actors := r.processes.of(kind)
		victim := actors[dice.IntN(len(actors))]
		if err := r.inject(context.WithoutCancel(ctx), victim); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) inject(ctx context.Context, victim *actor) error {
	switch victim.kind {
	case Worker:
		return r.injectWorker(ctx, victim)
	case Relay:
		return r.injectRelay(ctx, victim)
	case API:
		return r.injectAPI(ctx, victim)
	}
	return nil
}

// injectAPI kills the API, if it can be while a request waits for its answer.
func (r *round) injectAPI(ctx context.Context, victim *actor) error {
	for deadline := time.Now().Add(time.Second); r.load.inFlight.Load() == 0 && time.Now().Before(deadline); {
		if err := wait.For(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if r.load.inFlight.Load() > 0 {
		r.report.MidRequest++
	}
	victim.program.Kill()
	r.killed(victim)
	return victim.start(ctx)
}

func (r *round) killed(victim *actor) {
	r.report.Kills[victim.kind]++
	r.sayf("%s was killed", victim.instance())
}

// injectRelay kills a publisher and writes that down for the checker, with the arrivals that it lies between: what the
// dead one sent and did not settle is sent again. Every other one is killed in the middle of a settle.
func (r *round) injectRelay(ctx context.Context, victim *actor) error {
	before, err := r.recorder.Arrivals(ctx)
	if err != nil {
		return err
	}
	fault := check.Fault{Kind: check.Kill, Relay: victim.instance(), From: time.Now().UnixMicro(), First: before + 1}
	if r.report.Kills[Relay]%2 == 0 {
		if victim, err = r.killAtGate(ctx, inSettle, nil); err != nil || victim == nil {
			return err
		}
		fault.Relay = victim.instance()
		r.report.InSettle++
	} else {
		victim.program.Kill()
	}
	r.killed(victim)
	if err := victim.start(ctx); err != nil {
		return err
	}
	after, err := r.recorder.Arrivals(ctx)
	if err != nil {
		return err
	}
	if r.nats != nil { // of Pub/Sub we see what was delivered, which may be much later than it was sent
		fault.Last = after + 1
	}
	r.faults = append(r.faults, check.Record{Fault: &fault})
	return nil
}

// injectWorker kills workers by turns: with a notice whose commit the server completes, with one that it takes back,
// and whenever it may be.
func (r *round) injectWorker(ctx context.Context, victim *actor) (err error) {
	where := &r.report.Anywhere
	held := map[outbox.ID]string{}
	look := func(victim *actor) (err error) {
		held, err = r.holdsOf(ctx, victim)
		return err
	}
	switch r.report.Kills[Worker] % 3 {
	case 0:
		victim, err = r.killAtGate(ctx, atCommit, look)
		where = &r.report.AtCommit
	case 1:
		victim, err = r.killAtGate(ctx, beforeCommit, look)
		where = &r.report.BeforeCommit
	default:
		err = look(victim)
		victim.program.Kill()
	}
	if err != nil || victim == nil {
		return err
	}
	*where++
	r.killed(victim)
	if err := r.noteInterruptions(ctx, victim.instance(), held); err != nil {
		return err
	}
	return victim.start(ctx)
}

// A gate is where a process can be killed in the middle of a statement; sql/witness.sql has them.
type gate struct {
	kind Kind
	lock int
	// undone: the statement is taken back, as if it had never come as far as the server. Else the server goes on with it.
	undone bool
}

var (
	inSettle     = gate{kind: Relay, lock: 816, undone: true}
	atCommit     = gate{kind: Worker, lock: 815}
	beforeCommit = gate{kind: Worker, lock: 815, undone: true}
)

// patience is how long a process may take to come to a gate. A dead publisher's lanes stand still for as long as its
// lease.
const patience = 30 * time.Second

// killAtGate closes the gate until a process stands there, lets look see it, if there is somebody, and kills it. It
// returns nobody if nobody came: what that means is the checker's to say.
func (r *round) killAtGate(ctx context.Context, g gate, look func(*actor) error) (*actor, error) {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("marketplace proof: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", g.lock); err != nil {
		return nil, fmt.Errorf("marketplace proof: close a gate: %w", err)
	}
	victim, err := r.whoIsAt(ctx, g)
	if victim != nil {
		if look != nil {
			err = look(victim)
		}
		victim.program.Kill()
		if g.undone && err == nil {
			_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = "+
				"current_database() AND application_name = $1", victim.instance())
		}
	}
	if _, opening := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", g.lock); err == nil {
		err = opening
	}
	if err != nil {
		return nil, fmt.Errorf("marketplace proof: at a gate: %w", err)
	}
	return victim, nil
}

// whoIsAt waits until a process waits for the gate's lock.
func (r *round) whoIsAt(ctx context.Context, g gate) (*actor, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait.For(waiting, 5*time.Millisecond) == nil {
		found, err := rows[struct{ Name string }](ctx, r.pool, `SELECT a.application_name FROM pg_locks l 
			JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND l.objid = $1 AND NOT l.granted AND a.datname = current_database()`, g.lock)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			for _, a := range r.processes.of(g.kind) {
				if a.instance() == f.Name {
					return a, nil
				}
			}
		}
	}
	r.sayf("nothing of kind %s came to the gate %d", g.kind, g.lock)
	return nil, nil //nolint:nilnil // nobody came
}

// holdsOf looks at the events that are held in Redis, with their tokens, while the victim is frozen and not yet dead:
// whatever the proof does with a dead one takes time, in which its holds end.
func (r *round) holdsOf(ctx context.Context, victim *actor) (map[outbox.ID]string, error) {
	if r.inbox != Redis {
		return map[outbox.ID]string{}, nil
	}
	if err := victim.program.Freeze(ctx); err != nil {
		return nil, err
	}
	found, err := marks(ctx, r.redis)
	return tokens(found, "held:"), err
}

// noteInterruptions writes down which events were held in Redis when the worker died, and how many notices of each the
// dead have written. By time they could not be told from those of the living: what the dead one had just sent begins
// after its death on a busy machine, and others may handle an event again before its notices are counted.
func (r *round) noteInterruptions(ctx context.Context, instance string, held map[outbox.ID]string) error {
	if r.inbox != Redis {
		return nil
	}
	r.deadWorkers = append(r.deadWorkers, instance)
	// What was on its way to the database when the worker died may still be done.
	err := eventually.Within(ctx, startTime, "nothing of "+instance+" is left in the database", func() (bool, error) {
		n, err := r.count(ctx,
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1", instance)
		return n == 0, err
	})
	if err != nil {
		return err
	}
	for id, token := range held {
		notices, err := r.count(ctx, "SELECT count(*) FROM witness.notices WHERE event = $1 AND writer = ANY($2)",
			id, r.deadWorkers)
		if err != nil {
			return err
		}
		r.interruptions = append(r.interruptions, Interruption{Event: id, Token: token, Notices: notices})
		r.between = r.between || notices > 0
	}
	return nil
}

// finished are the tokens under which events were handled.
func (r *round) finished(ctx context.Context) (map[outbox.ID]string, error) {
	if r.inbox != Redis {
		return map[outbox.ID]string{}, nil
	}
	found, err := marks(ctx, r.redis)
	return tokens(found, "done:"), err
}
