package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// Plan is what to run.
type Plan struct {
	Servers
	// Only takes the inputs that it is true for. Defaults to all.
	Only func(name string) bool
	// Wrap puts a mutant around each publisher. Defaults to none.
	Wrap func(inner publish.Publisher) publish.Publisher
	// Spoil puts a mutant into an outbox, before its relay starts. It gets a pool's Exec and the schema.
	Spoil func(ctx context.Context, exec func(statement string) error, schema string) error
	// Within is how long a good event behind a bad one may take. Defaults to 2 s, which is the promise.
	Within time.Duration
	// Trips is how many controls must have come through meanwhile for it to be late: with fewer, it was the machine
	// that was slow. Defaults to 50, which take less than Within unless one of them takes more than 20 ms.
	Trips int
	// Came is told of each control that came through. Defaults to nobody.
	Came func(on Broker)
	// Lease is the relays'. Defaults to theirs.
	Lease time.Duration
	// Patience is how long a good event is waited for, and then all that is open at the end; Reading is how long it
	// may take to read back what was published. They end a run that hangs, and decide nothing else. Default to
	// two minutes.
	Patience, Reading time.Duration
}

// hung is how long something may take that takes a moment: after that it hangs.
const hung = 2 * time.Minute

// mostMissing is how many good events may not arrive within the patience before nothing more is tried on an outlet.
const mostMissing = 3

// trial is one input on one broker.
type trial struct {
	in         input
	at         *outlet
	isRejected bool
	written    []event
	good       []good
	problem    string
}

// good is an event that nothing is wrong with.
type good struct {
	event
	committing time.Time // just before the commit was sent
}

// Run tries every input on every broker and checks what became of it.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	began := time.Now()
	if plan.Within == 0 {
		plan.Within = 2 * time.Second
	}
	if plan.Trips == 0 {
		plan.Trips = 50
	}
	if plan.Came == nil {
		plan.Came = func(Broker) {}
	}
	if plan.Patience == 0 {
		plan.Patience = hung
	}
	if plan.Reading == 0 {
		plan.Reading = hung
	}
	w, err := newEnv(ctx, plan.Servers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	plain, troubled, leftOut := all()
	r := &run{plan: plan, say: say, began: began, report: newReport(leftOut, plan)}
	var phases [2][]*outlet
	for _, on := range []Broker{NATS, PubSub} {
		for i, name := range []string{string(on), string(on) + "_troubled"} {
			o, err := w.open(ctx, on, name, i == 1, plan)
			if err != nil {
				return nil, err
			}
			phases[i] = append(phases[i], o)
		}
		o, err := w.open(ctx, on, string(on)+"_control", false, Plan{Patience: hung}) // no mutant
		if err != nil {
			return nil, err
		}
		r.report.controls[on].at = o
	}
	err = r.beside(ctx, func(ctx context.Context) error {
		for i, inputs := range [][]input{plain, troubled} {
			if err := r.phase(ctx, phases[i], chosen(inputs, plan.Only)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.report.seconds, r.report.partial = time.Since(began).Seconds(), plan.Only != nil
	r.report.finish()
	return r.report, nil
}

// beside does something while the controls go round.
func (r *run) beside(ctx context.Context, do func(context.Context) error) error {
	for _, c := range r.report.controls {
		if err := c.at.warm(ctx); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	circling, enough := context.WithCancel(ctx)
	for _, c := range r.report.controls {
		group.Go(func() error { return c.circle(circling, r.plan.Came) })
	}
	group.Go(func() error {
		defer enough()
		return do(ctx)
	})
	return group.Wait()
}

func chosen(inputs []input, only func(string) bool) []input {
	if only == nil {
		return inputs
	}
	var taken []input
	for _, in := range inputs {
		if only(in.name) {
			taken = append(taken, in)
		}
	}
	return taken
}

// run is one run under way.
type run struct {
	plan   Plan
	say    io.Writer
	began  time.Time
	report *Report
}

// phase tries inputs on both brokers at once, one after the other on each, and checks them.
func (r *run) phase(ctx context.Context, outlets []*outlet, inputs []input) error {
	trials := make([][]*trial, len(outlets))
	problems := make([]error, len(outlets))
	var trying sync.WaitGroup
	for i, o := range outlets {
		own := slices.Clone(inputs)
		if i%2 == 1 { // from the other end: the large inputs do not meet, and the machine is not what is measured
			slices.Reverse(own)
		}
		trying.Go(func() { trials[i], problems[i] = r.tryAll(ctx, o, own) })
	}
	trying.Wait()
	if err := errors.Join(problems...); err != nil {
		return err
	}
	for i, o := range outlets {
		if n := len(trials[i]); n < len(inputs) {
			r.report.failf("%s: no good event arrives any more after %d inputs of %d", o.topic, n, len(inputs))
		}
		if err := r.settled(ctx, o, trials[i]); err != nil {
			return err
		}
		if err := r.check(ctx, o, trials[i]); err != nil {
			return err
		}
		r.sayf("%s: %d inputs checked", o.topic, len(trials[i]))
	}
	return nil
}

func (r *run) tryAll(ctx context.Context, o *outlet, inputs []input) (trials []*trial, err error) {
	if err := o.warm(ctx); err != nil {
		return nil, err
	}
	missing := 0
	for _, in := range inputs {
		o.inputs.Add(1)
		t := &trial{in: in, at: o}
		if err := r.try(ctx, t); err != nil {
			return nil, fmt.Errorf("hostile: %s on %s: %w", in.name, o.broker, err)
		}
		trials = append(trials, t)
		if _, arrived := o.arrivals.of(t.good[0].id); !arrived {
			missing++
		}
		if missing == mostMissing {
			break
		}
	}
	return trials, nil
}

// try writes an input, then good events behind it, and waits for the one of another aggregate.
func (r *run) try(ctx context.Context, t *trial) error {
	tx, err := t.at.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	rejection, err := t.write(ctx, tx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("good-%d", t.at.number())
	if t.isRejected = rejection != nil; t.isRejected {
		if !clearlyRejected(rejection) {
			t.problem = fmt.Sprintf("failed, and not as a refusal: %.300v", rejection)
		}
		// The same transaction goes on, as the application would.
		t.good, err = t.at.goods(ctx, r.plan.Patience, tx, name)
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	t.good, err = t.at.goods(ctx, r.plan.Patience, nil, name, t.sameAggregate()...)
	return err
}

// write writes the input under a savepoint.
func (t *trial) write(ctx context.Context, tx pgx.Tx) (rejection, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	t.written, rejection = t.in.write(ctx, savepoint, t.at)
	if rejection != nil {
		if err := savepoint.Rollback(ctx); err != nil {
			return nil, fmt.Errorf("roll back: %w", err)
		}
		return rejection, nil
	}
	if err := savepoint.Commit(ctx); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return nil, nil
}

// sameAggregate is a good event of the aggregate of the bad one, where the contract lets it pass.
func (t *trial) sameAggregate() []corpus.Given {
	last := t.written[len(t.written)-1]
	if t.in.want(t.at.broker, t.written).ending == Parked || last.kind == blockingType || last.aggregate != aggregateType {
		return nil
	}
	next := t.at.good(last.key)
	next.Contract.Namespace = last.namespace
	if _, err := outbox.Statement(t.at.schema, next.Event()); err != nil || last.namespace == "" {
		return nil // no good event has that name
	}
	return []corpus.Given{next}
}

func (o *outlet) good(key string) corpus.Given {
	g := corpus.OrderCreated(`{"good":true,"note":"` + secret + `"}`)
	g.Contract.Topic, g.AggregateID = o.topic, key
	return g
}

// goods commits good events, in the given transaction or in one of their own, and waits for the first. When the
// others arrive is seen later: the broker has written it down.
func (o *outlet) goods(
	ctx context.Context, patience time.Duration, tx pgx.Tx, name string, more ...corpus.Given,
) ([]good, error) {
	if tx == nil {
		var err error
		if tx, err = o.begin(ctx); err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	}
	given := append([]corpus.Given{o.good(name)}, more...)
	receipts, err := corpus.Emit(ctx, tx, o.schema, given)
	if err != nil {
		return nil, fmt.Errorf("hostile: a good event: %w", err)
	}
	all := make([]good, len(given))
	committing := time.Now()
	for i, g := range given {
		id := receipts[i].ID
		all[i] = good{
			committing: committing,
			event: newEvent(id, corpus.Or(g.Contract.Namespace, outbox.DefaultNamespace), g.Contract.Type,
				g.Contract.Aggregate, g.AggregateID, "", "", g.Envelope(id.String()), nil),
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("hostile: commit a good event: %w", err)
	}
	o.bell.Ring()
	waiting, enough := context.WithTimeout(ctx, patience)
	defer enough()
	o.arrivals.await(waiting, all[0].id)
	return all, context.Cause(ctx)
}

// warm waits for a first event: the relay takes its lanes before it sends any, which says nothing.
func (o *outlet) warm(ctx context.Context) error {
	first, err := o.goods(ctx, hung, nil, "first")
	if err != nil {
		return err
	}
	if _, arrived := o.arrivals.of(first[0].id); !arrived {
		return fmt.Errorf("hostile: %s: no event arrives at all", o.topic)
	}
	return nil
}

// settled waits until nothing is open that is due, for as long as the plan's patience. An event that panics is charged
// only when others of its topic pass: as long as one is open, good events are sent beside it.
func (r *run) settled(ctx context.Context, o *outlet, trials []*trial) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(r.plan.Patience)
	beside := slices.IndexFunc(trials, func(t *trial) bool { return t.in.panics })
	for n := 0; ; n++ {
		open, panicking, err := o.open(ctx, trials)
		if err != nil {
			return err
		}
		if open == 0 {
			return nil
		}
		if panicking > 0 {
			more, err := o.goods(ctx, r.plan.Patience, nil, fmt.Sprintf("beside-%d", n))
			if err != nil {
				return err
			}
			trials[beside].good = append(trials[beside].good, more...)
		}
		select {
		case <-tick.C:
		case <-deadline:
			return nil // what is open now is stuck
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// open counts the events that are open and due, and those of them that panic.
func (o *outlet) open(ctx context.Context, trials []*trial) (open, panicking int, err error) {
	var ids []string
	for _, t := range trials {
		for _, e := range t.written {
			if t.in.panics {
				ids = append(ids, e.id.String())
			}
		}
	}
	err = o.pool.QueryRow(ctx,
		`SELECT count(*), count(*) FILTER (WHERE e.id::text = ANY($1::text[])) FROM "`+o.schema+`".outbox_events e
		LEFT JOIN "`+o.schema+`".outbox_held h ON h.lane = e.lane AND h.seq = e.seq
		WHERE e.state = 0 OR h.kind = 3 OR h.kind = 1 AND h.due < now() + interval '1 hour'`, ids).Scan(&open, &panicking)
	if err != nil {
		return 0, 0, fmt.Errorf("hostile: %w", err)
	}
	return open, panicking, nil
}

func (r *run) sayf(format string, args ...any) {
	// An error here is of no consequence.
	_, _ = fmt.Fprintf(r.say, "proof-hostile: %5.1f s: %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}
