package crash

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Plan is how much a run does.
type Plan struct {
	// Postgres and Broker are the servers' addresses.
	Postgres, Broker string
	// Folder takes the histories, a folder a point.
	Folder string
	// Executable is the program that [Build] makes.
	Executable string
	// Points are those to try; all of them by [Points]. [Stops] and [Poison] may be among them.
	Points []string
	// Rounds is how many relays are asked to stop in the trial of that.
	Rounds int
	// Events is how many events a trial has, at least.
	Events int
	// Beside is how many trials run at a time. Most of its time each waits for a lease to end.
	Beside int
	// Patience is how long a process may take to die. Much more than it needs.
	Patience time.Duration
	// Drain is how long nothing may move while something is open. Many times what a relay needs.
	Drain time.Duration
	// Least is how many events all trials together must have had.
	Least int
	// Environment is added to that of all processes.
	Environment []string
}

// Long is the whole proof.
func Long() Plan {
	return Plan{
		Points: everything(), Events: 250, Rounds: 100, Beside: 10, Patience: patience, Drain: drainTime, Least: 10_000,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{Points: everything(), Events: 90, Rounds: 10, Beside: 10, Patience: patience, Drain: drainTime}
}

// everything begins with what takes longest.
func everything() []string { return append([]string{Stops, Poison}, Points()...) }

// patience is how long something may take that must happen in the end, on whatever machine.
const patience = 2 * time.Minute

// Run tries every point of the plan.
func Run(ctx context.Context, plan Plan, say io.Writer) (*Report, error) {
	began := time.Now()
	report := &Report{plan: plan, Outcomes: make([]*Outcome, len(plan.Points))}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(plan.Beside)
	for i, point := range plan.Points {
		group.Go(func() error {
			t, err := newTrial(plan, point)
			if err != nil {
				return err
			}
			outcome, err := t.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", point, err)
			}
			report.Outcomes[i] = outcome
			mu.Lock()
			defer mu.Unlock()
			_, _ = fmt.Fprintf(say, "proof-crash: %5.1f s: %s\n", time.Since(began).Seconds(), outcome) // of no consequence
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.seconds = time.Since(began).Seconds()
	return report, nil
}
