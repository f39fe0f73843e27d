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

// Blow is one kind of harm, done over and over while the producers write.
type Blow struct {
	Kind check.FaultKind
	// Every is about how long it rests between two.
	Every time.Duration
	// Least is how often it must have happened: until then the producers go on, also when they have written all events.
	Least int
	// Enough tells, when it has happened that often, whether what it was for has come of it; if not, it falls again.
	// Defaults to yes. It is not called while the blow falls.
	Enough func() bool
	// Strike does it once, and undoes it before it returns, also when the context ends meanwhile. The fault goes into
	// the log; its kind, and its times where it has none, are added.
	Strike func(ctx context.Context, on *Target) (check.Fault, error)
}

// Target is what a blow may reach.
type Target struct {
	Plan  Plan
	World *World
	Fleet *Fleet
	// Random is the blow's own.
	Random    *rand.Rand
	producers *producers
}

// storm lets the blows of a plan fall.
type storm struct {
	target Target
	faults *check.Writer
	sayf   func(format string, args ...any)
	fallen atomic.Int64
	// wanting is how many blows have not fallen as often as they must.
	wanting atomic.Int64
}

// run strikes until the context ends, and returns when everything is undone.
func (s *storm) run(ctx context.Context) error {
	var group errgroup.Group // no context: what was begun is finished
	for n, blow := range s.target.Plan.Storm {
		target := s.target
		target.Random = rand.New(rand.NewPCG(s.target.Plan.Seed, uint64(n+2)<<32))
		group.Go(func() error { return s.repeat(ctx, blow, &target) })
	}
	return group.Wait() //nolint:wrapcheck // the blows' own
}

func (s *storm) repeat(ctx context.Context, blow Blow, target *Target) error {
	every := blow.Every / 2 // the first comes sooner, or a short storm would not have them all
	satisfied := false
	for times := 0; ; {
		if !satisfied && times >= blow.Least && (blow.Enough == nil || blow.Enough()) {
			satisfied = true
			s.wanting.Add(-1)
		}
		// Between a half and one and a half of the time, so that two kinds do not fall into step.
		rest := every/2 + time.Duration(target.Random.Int64N(int64(every)+1))
		if s.pause(ctx, rest) != nil {
			return nil //nolint:nilerr // the storm is over
		}
		from := now()
		fault, err := blow.Strike(ctx, target)
		switch {
		case errors.Is(err, errStormOver):
			return nil
		case errors.Is(err, ErrMissed):
			every = blow.Every / 8
			continue
		case err != nil:
			return fmt.Errorf("torture: %s: %w", blow.Kind, err)
		}
		every = blow.Every
		times++
		if err := s.log(blow.Kind, fault, from); err != nil {
			return err
		}
	}
}

// pause rests for so long, and until the producers have written half of what they should in that time: on a machine
// that is too slow for the plan the storm is slower as well, or they would hardly get anything done.
func (s *storm) pause(ctx context.Context, rest time.Duration) error {
	plan := s.target.Plan
	enough := s.target.producers.committed.Load() + int64(float64(plan.Events)*rest.Seconds()/plan.Production.Seconds()/2)
	err := wait.For(ctx, rest)
	for err == nil && s.target.producers.committed.Load() < enough {
		err = wait.For(ctx, 20*time.Millisecond)
	}
	return err
}

// log writes a fault down, and says it.
func (s *storm) log(kind check.FaultKind, fault check.Fault, from int64) error {
	fault.Kind = kind
	fault.From = cmp.Or(fault.From, from)
	fault.To = cmp.Or(fault.To, now())
	if err := s.faults.Add(check.Record{Fault: &fault}); err != nil {
		return fmt.Errorf("torture: log a fault: %w", err)
	}
	s.fallen.Add(1)
	if !s.target.Plan.Quiet {
		s.sayf("%s %s%s%s for %d ms", fault.Kind, fault.Relay, fault.Topic, fault.Detail, (fault.To-fault.From)/1000)
	}
	return nil
}

// ErrMissed tells that a blow found nothing to strike. It falls again soon, and this one does not count.
var ErrMissed = errors.New("there was nothing to strike")

// errStormOver ends a blow that did not fall.
var errStormOver = errors.New("the storm is over")

func now() int64 { return time.Now().UnixMicro() }
