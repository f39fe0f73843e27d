package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// Fault is one kind of fault, injected again and again while the producers write.
type Fault struct {
	Kind check.FaultKind
	// Every is about how long the pause between two of them is.
	Every time.Duration
	// Least is how often it must have happened: until then the producers go on, also when they have written all events.
	Least int
	// Enough tells, when it has happened that often, whether what it was for has come of it; if not, it is injected again.
	// Defaults to yes. It is not called while the fault is injected.
	Enough func() bool
	// Inject does it once, and undoes it before it returns, also when the context ends meanwhile. The fault goes into
	// the log; its kind, and its times where it has none, are added.
	Inject func(ctx context.Context, on *Target) (check.Fault, error)
}

// Target is what a fault may reach.
type Target struct {
	Plan  Plan
	Env   *Env
	Fleet *Fleet
	// Random is the fault's own.
	Random    *rand.Rand
	producers *producers
}

// injector injects the faults of a plan.
type injector struct {
	target   Target
	faults   *check.Writer
	sayf     func(format string, args ...any)
	injected atomic.Int64
	// wanting is how many faults were not injected as often as they must be.
	wanting atomic.Int64
}

// run injects until the context ends, and returns when everything is undone.
func (i *injector) run(ctx context.Context) error {
	var group errgroup.Group // no context: what was begun is finished
	for n, fault := range i.target.Plan.Schedule {
		target := i.target
		target.Random = rand.New(rand.NewPCG(i.target.Plan.Seed, uint64(n+2)<<32))
		group.Go(func() error { return i.repeat(ctx, fault, &target) })
	}
	return group.Wait() //nolint:wrapcheck // the faults' own
}

func (i *injector) repeat(ctx context.Context, fault Fault, target *Target) error {
	every := fault.Every / 2 // the first comes sooner, or a short run would not have them all
	satisfied := false
	for times := 0; ; {
		if !satisfied && times >= fault.Least && (fault.Enough == nil || fault.Enough()) {
			satisfied = true
			i.wanting.Add(-1)
		}
		// Between a half and one and a half of the time, so that two kinds do not come in step.
		rest := every/2 + time.Duration(target.Random.Int64N(int64(every)+1))
		if i.pause(ctx, rest) != nil {
			return nil //nolint:nilerr // the schedule is over
		}
		from := now()
		done, err := fault.Inject(ctx, target)
		switch {
		case errors.Is(err, errScheduleOver):
			return nil
		case errors.Is(err, ErrMissed):
			every = fault.Every / 8
			continue
		case err != nil:
			return fmt.Errorf("torture: %s: %w", fault.Kind, err)
		}
		every = fault.Every
		times++
		if err := i.log(fault.Kind, done, from); err != nil {
			return err
		}
	}
}

// pause rests for so long, and until the producers have written half of what they should in that time: on a machine
// that is too slow for the plan the schedule is slower as well, or they would hardly get anything done.
func (i *injector) pause(ctx context.Context, rest time.Duration) error {
	plan := i.target.Plan
	enough := i.target.producers.committed.Load() + int64(float64(plan.Events)*rest.Seconds()/plan.Production.Seconds()/2)
	err := wait.For(ctx, rest)
	for err == nil && i.target.producers.committed.Load() < enough {
		err = wait.For(ctx, 20*time.Millisecond)
	}
	return err
}

// log writes a fault down, and says it.
func (i *injector) log(kind check.FaultKind, fault check.Fault, from int64) error {
	fault.Kind = kind
	fault.From = cmp.Or(fault.From, from)
	fault.To = cmp.Or(fault.To, now())
	if err := i.faults.Add(check.Record{Fault: &fault}); err != nil {
		return fmt.Errorf("torture: log a fault: %w", err)
	}
	i.injected.Add(1)
	if !i.target.Plan.Quiet {
		i.sayf("%s %s%s%s for %d ms", fault.Kind, fault.Relay, fault.Topic, fault.Detail, (fault.To-fault.From)/1000)
	}
	return nil
}

// ErrMissed tells that a fault found nothing to hit. It is injected again soon, and this one does not count.
var ErrMissed = errors.New("there was nothing to hit")

// errScheduleOver ends a fault that was not injected.
var errScheduleOver = errors.New("the schedule is over")

func now() int64 { return time.Now().UnixMicro() }
