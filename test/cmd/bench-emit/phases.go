package main

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// phase is one interleaved run: the same number of clients for all its subjects.
type phase struct {
	name     string
	clients  int
	subjects []string
	// again is the subject that is the base a second time.
	base, again string
	// half gives the phase half the rounds, because it has many subjects.
	half bool
	// stretch makes the turns this many times longer, for transactions that take longer. 0 is 1.
	stretch int
}

// minTransactions is what a block must have measured to count: a median of fewer says nothing.
const minTransactions = 10

// burst is how many transactions one client does before the next subject's turn.
const burst = 10

// warmUp is how long every subject runs before the first round.
const warmUp = 300 * time.Millisecond

// turn is how long a turn of the phase is measured.
func (o options) turn(p phase) time.Duration { return time.Duration(max(p.stretch, 1)) * o.block }

// roundsOf is how many rounds the phase has.
func (o options) roundsOf(p phase) int {
	if p.half {
		return max(o.rounds/2, 3)
	}
	return o.rounds
}

// plan lists the phases of a run.
func (o options) plan() []phase {
	phases := []phase{{
		name: "latency", clients: 1, base: bare, again: bareAgain,
		subjects: []string{bare, bareAgain, emitOne, emitKeyed},
	}}
	if o.long {
		phases[0].subjects = append(phases[0].subjects, emitLaneOnly, noEvent, emitFunction, bareSQL, emitSQL,
			bareGORM, emitGORM)
	}
	for _, clients := range o.clients {
		many := phase{
			name: fmt.Sprintf("throughput%d", clients), clients: clients, base: bare, again: bareAgain,
			subjects: []string{bare, bareAgain, emitOne, emitKeyed},
		}
		if o.long {
			many.subjects = append(many.subjects, emitLaneOnly)
		}
		phases = append(phases, many)
	}
	hundred := phase{
		name: "hundred", clients: 1, stretch: 2, base: bareMany, again: bareManyAgain,
		subjects: []string{bareMany, bareManyAgain, emitMany},
	}
	if o.long {
		hundred.subjects = append(hundred.subjects, emitManyLaneOnly, bareUnnest, emitManyKeyed)
	}
	return append(phases, hundred)
}

// length is how long the phase takes if all goes by the plan.
func (o options) length(p phase) time.Duration {
	turns := 2 * o.roundsOf(p) * len(p.subjects)
	return time.Duration(turns)*(o.turn(p)+o.settle) + time.Duration(len(p.subjects))*warmUp
}

// measure runs one phase.
func (r *run) measure(ctx context.Context, p phase) ([]bench.Sample, error) {
	makers := make([]maker, len(p.subjects))
	for i, name := range p.subjects {
		makers[i] = maker{name: name, make: func(d *drivers) transaction { return d.subjects()[name] }}
	}
	return r.interleave(ctx, p, makers)
}

// maker makes the transaction of a subject on the drivers that it is given.
type maker struct {
	name string
	make func(*drivers) transaction
}

// interleave warms every subject up and then gives all of them their turns: a few transactions each
// with one client, so that all see the same machine; longer ones with more clients, which saturate it.
func (r *run) interleave(ctx context.Context, p phase, makers []maker) (samples []bench.Sample, err error) {
	// Once a phase and before the warm-up: what a page costs when it is first touched after a checkpoint is
	// then paid before the first turn, as it is between two checkpoints of a server in use.
	if err := r.env.db.Checkpoint(ctx); err != nil {
		return nil, err
	}
	if p.clients == 1 {
		samples, err = r.alternate(ctx, p, makers)
	} else {
		samples, err = r.takeTurns(ctx, p, makers)
	}
	if err == nil && r.raw != nil {
		err = r.raw.Write(p.name, samples)
	}
	return samples, err
}

// servers lists the backends of one application_name, where they can be looked at.
func (r *run) servers(application string) func(context.Context) ([]int, error) {
	if !r.seesCPU {
		return nil
	}
	return func(ctx context.Context) ([]int, error) { return r.env.db.Backends(ctx, application) }
}

// alternate gives every subject a connection of its own.
func (r *run) alternate(ctx context.Context, p phase, makers []maker) ([]bench.Sample, error) {
	subjects := make([]bench.Single, len(makers))
	for i, m := range makers {
		application := fmt.Sprintf("bench-emit-%d", i)
		d, err := r.env.open(ctx, application, 1)
		if err != nil {
			return nil, err
		}
		defer d.close()
		subjects[i] = bench.Single{Name: m.name, Transaction: m.make(d), Servers: r.servers(application)}
	}
	turns := bench.Alternation{
		Burst: burst, Rounds: 1, Length: time.Duration(len(makers)) * warmUp, AtLeast: minTransactions,
		Done: func(bench.Sample) { r.progress.Done(warmUp, p.name+", warm-up") },
	}
	if _, err := turns.Run(ctx, subjects); err != nil {
		return nil, err
	}
	turn := 2 * r.options.turn(p)
	turns.Rounds, turns.Length, turns.Done = r.options.roundsOf(p), time.Duration(len(makers))*turn, r.told(p, turn)
	return turns.Run(ctx, subjects)
}

// takeTurns lets the subjects use the same connections, one after the other.
func (r *run) takeTurns(ctx context.Context, p phase, makers []maker) ([]bench.Sample, error) {
	const application = "bench-emit"
	d, err := r.env.open(ctx, application, p.clients)
	if err != nil {
		return nil, err
	}
	defer d.close()
	subjects := make([]bench.Subject, len(makers))
	for i, m := range makers {
		load := bench.Load{
			Clients: p.clients, Settle: r.options.settle, AtLeast: minTransactions,
			Transaction: m.make(d), Servers: r.servers(application),
		}
		subjects[i] = bench.Subject{Name: m.name, Measure: load.Measure}
		if _, err := load.Measure(ctx, bench.Block{Round: -1, Length: warmUp}); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		r.progress.Done(warmUp, p.name+", warm-up")
	}
	turn := r.options.turn(p)
	turns := bench.Interleaver{Rounds: r.options.roundsOf(p), Length: turn, Done: r.told(p, turn+r.options.settle)}
	return turns.Run(ctx, subjects)
}

// told counts a sample as this much of the planned work.
func (r *run) told(p phase, work time.Duration) func(bench.Sample) {
	return func(s bench.Sample) {
		r.progress.Done(work, fmt.Sprintf("%s, round %d of %d", p.name, s.Round+1, r.options.roundsOf(p)))
	}
}
