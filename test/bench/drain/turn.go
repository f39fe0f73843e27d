package drain

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// A Drainer empties one table and returns when every event is settled.
type Drainer struct {
	Name  string
	Table string
	// Reads is a part of the text of the statement that reads events.
	Reads string
	// Drain publishes to the ledger. It calls settled when all is settled, with its connections still
	// open, so that their processes can be looked at.
	Drain func(ctx context.Context, ledger *Ledger, settled func() error) error
	// Broker, when set, prepares the broker for a turn and returns how to check and clean it afterwards.
	Broker func(ctx context.Context, events int) (check func(context.Context) error, err error)
	// BrokerProcess is the broker's process; 0 where there is none or it cannot be seen.
	BrokerProcess int
}

// A Turn is what one drain measured.
type Turn struct {
	bench.Sample
	BrokerCPU   time.Duration
	Connections int
	Counts      *Counts // nil: nobody counted
}

// Patience is how long a drain may take before it counts as stuck.
const Patience = 3 * time.Minute

// Measure fills the table and drains it. Time runs from the first event at the publisher to the last one
// settled, by the clock of the one machine that this needs; CPU from the start, connections included.
func (w *Env) Measure(ctx context.Context, template Template, d Drainer) (turn Turn, err error) {
	return w.measure(ctx, template, d, func(drain func() error) error { return drain() })
}

// measure does that, with something around the drain.
func (w *Env) measure(ctx context.Context, template Template, d Drainer,
	around func(drain func() error) error,
) (turn Turn, err error) {
	if err := w.Refill(ctx, template, d.Table); err != nil {
		return turn, err
	}
	check := func(context.Context) error { return nil }
	if d.Broker != nil {
		if check, err = d.Broker(ctx, template.Events); err != nil {
			return turn, err
		}
	}
	ledger := NewLedger(template.Events)
	err = around(func() error { return w.drain(ctx, &turn, ledger, d) })
	if err != nil {
		return turn, fmt.Errorf("drain: %s, %d of %d events published: %w", d.Name, ledger.Count(), template.Events, err)
	}
	return turn, errors.Join(w.assess(ctx, &turn, ledger, template, d), check(ctx))
}

// drain does it, with the meters read before and behind.
func (w *Env) drain(ctx context.Context, turn *Turn, ledger *Ledger, d Drainer) error {
	runtime.GC() // the last turn's garbage is not this one's
	brokerBefore, err := brokerCPU(d.BrokerProcess)
	if err != nil {
		return err
	}
	clientBefore := bench.ProcessCPU()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return d.Drain(ctx, ledger, func() error {
		turn.ClientCPU = bench.ProcessCPU() - clientBefore
		return w.readMeters(ctx, turn, d.BrokerProcess, brokerBefore)
	})
}

func (w *Env) readMeters(ctx context.Context, turn *Turn, broker int, brokerBefore time.Duration) error {
	backends, err := w.Backends(ctx)
	if err != nil {
		return err
	}
	turn.Connections = len(backends)
	if turn.ServerCPU, err = bench.CPUOf(backends); err != nil {
		return err
	}
	after, err := brokerCPU(broker)
	turn.BrokerCPU = after - brokerBefore
	return err
}

// assess makes sure that the turn did what it was measured for.
func (w *Env) assess(ctx context.Context, turn *Turn, ledger *Ledger, template Template, d Drainer) error {
	result, err := w.Result(ctx, d.Table)
	if err != nil {
		return err
	}
	turn.Transactions = result.Published
	turn.Elapsed = result.Last.Sub(ledger.First())
	if result.Rows != template.Events || result.Published != template.Events || result.Charged > 0 {
		err = fmt.Errorf("drain: %s: of %d events the table has %d, %d of them published and %d charged with a failure",
			d.Name, template.Events, result.Rows, result.Published, result.Charged)
	}
	return errors.Join(err, ledger.Check())
}

func brokerCPU(process int) (time.Duration, error) {
	if process == 0 {
		return 0, nil
	}
	return bench.CPUOf([]int{process})
}
