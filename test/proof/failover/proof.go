package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Name is how the proof calls itself.
const Name = "proof-failover"

// Proof says where and how much.
type Proof struct {
	Broker string
	// Folder takes the histories, a folder an arm.
	Folder string
	// Executable is started with "relay" and a file's name for every process of a relay.
	Executable string
	Short      bool
	Seed       uint64
	Say        io.Writer

	saying sync.Mutex
	mutant string // a bug in the relays' publishers, for tests
}

// Run plays all arms side by side: most of their time they wait.
func (p *Proof) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	r := &Result{}
	group, ctx := errgroup.WithContext(ctx)
	for name, arm := range map[string]func(context.Context) error{
		"strict":       func(ctx context.Context) (err error) { r.Strict, err = p.strict(ctx); return err },
		"asynchronous": func(ctx context.Context) (err error) { r.Async, err = p.asynchronous(ctx); return err },
		"waits":        func(ctx context.Context) (err error) { r.Waits, err = p.waits(ctx); return err },
		"standby":      func(ctx context.Context) (err error) { r.Standby, err = p.standby(ctx); return err },
		"crashes":      func(ctx context.Context) (err error) { r.Crashes, err = p.crashes(ctx); return err },
		"control":      func(ctx context.Context) (err error) { r.Control, err = p.control(ctx); return err },
		"killed":       func(ctx context.Context) (err error) { r.Killed, err = p.killed(ctx); return err },
		"restore":      func(ctx context.Context) (err error) { r.Restore, err = p.restore(ctx); return err },
	} {
		group.Go(func() error {
			if err := arm(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// Write lets the arms say something, one at a time.
func (p *Proof) Write(text []byte) (int, error) {
	p.saying.Lock()
	defer p.saying.Unlock()
	return p.Say.Write(text)
}

// size is a number of the long form, or of the short one.
func (p *Proof) size(long, short int) int {
	if p.Short {
		return short
	}
	return long
}

// plan is a run of torture on this database. The arm adds its faults.
func (p *Proof) plan(arm, postgres string, events int, production time.Duration) (torture.Plan, error) {
	plan := torture.Plan{
		Name: arm, Postgres: postgres, Broker: p.Broker, Folder: filepath.Join(p.Folder, arm), Executable: p.Executable,
		Relays: 2, Aggregates: 100, Events: events, Production: production, Producers: 8, Lease: 2 * time.Second,
		Drain: time.Minute,
		Seed:  p.Seed, Unsteady: true, Mutant: p.mutant,
	}
	if err := os.MkdirAll(plan.Folder, 0o700); err != nil {
		return plan, fmt.Errorf("failover: %w", err)
	}
	return plan, nil
}

// pair is a primary and its standby.
type pair struct {
	primary, standby *cluster.Cluster
}

// newPair makes them. Synchronous: what the primary acknowledges, the standby has.
func newPair(ctx context.Context, synchronous bool) (*pair, error) {
	const name = "second"
	primary, err := cluster.New(ctx, cluster.Config{})
	if err != nil {
		return nil, err
	}
	p := &pair{primary: primary}
	p.standby, err = primary.Standby(ctx, name)
	if err == nil && synchronous {
		err = primary.Set(ctx, "synchronous_standby_names", name)
	}
	if err == nil && synchronous {
		err = eventually.Within(ctx, eventually.Patience, "the standby is synchronous", func() (bool, error) {
			state, err := primary.Text(ctx, "SELECT sync_state FROM pg_stat_replication")
			return state == "sync", err
		})
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pair) close() error {
	err := p.primary.Close()
	if p.standby != nil {
		err = errors.Join(err, p.standby.Close())
	}
	return err
}

// failOver kills the primary and promotes the standby, to the end also when the schedule is over meanwhile.
func (p *pair) failOver(ctx context.Context) (check.Fault, error) {
	ctx = context.WithoutCancel(ctx)
	fault := check.Fault{From: time.Now().UnixMicro()}
	if err := p.primary.Kill(ctx); err != nil {
		return fault, err
	}
	err := p.standby.Promote(ctx)
	fault.To = time.Now().UnixMicro()
	return fault, err
}
