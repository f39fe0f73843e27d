package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// Leave is a relay that was asked to stop, and another that joined in its place. It explains nothing.
const Leave check.FaultKind = "leave"

// Kills lets relays die without warning; others join in their place a little later.
func Kills(every time.Duration, least int) Fault {
	return Fault{
		Kind: check.Kill, Every: every, Least: least, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			return on.replace(ctx, func(slot int) (check.Fault, error) {
				p, err := on.Fleet.signal(slot, os.Kill, true)
				if err != nil {
					return check.Fault{}, err
				}
				<-p.done
				return check.Fault{Relay: p.name, From: now(), To: now()}, nil
			})
		},
	}
}

// Leaves lets relays stop in good order; others join in their place a little later.
func Leaves(every time.Duration, least int) Fault {
	return Fault{
		Kind: Leave, Every: every, Least: least, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			return on.replace(ctx, func(slot int) (check.Fault, error) {
				fault := check.Fault{Relay: on.Fleet.name(slot), From: now()}
				err := on.Fleet.leave(slot)
				fault.To = now()
				return fault, err
			})
		},
	}
}

// Pauses lets relays stand still for longer than their lease.
func Pauses(every time.Duration, least int) Fault {
	return Fault{
		Kind: check.Pause, Every: every, Least: least, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			slot, free := on.Fleet.borrow(ctx)
			if free == nil {
				return check.Fault{}, errScheduleOver
			}
			defer free()
			p, err := on.Fleet.signal(slot, syscall.SIGSTOP, false)
			if err != nil {
				return check.Fault{}, err
			}
			fault := check.Fault{Relay: p.name, From: now()}
			// To its end also when the schedule is over: a process that stands still would do so forever.
			_ = wait.For(context.WithoutCancel(ctx), on.Plan.Lease+on.little())
			fault.To = now()
			_, err = on.Fleet.signal(slot, syscall.SIGCONT, false)
			return fault, err
		},
	}
}

// little is what a machine needs to come back.
func (t *Target) little() time.Duration {
	return time.Duration(200+t.Random.IntN(1300)) * time.Millisecond
}

// replace ends the relay of a slot and starts another a little later.
func (t *Target) replace(ctx context.Context, end func(slot int) (check.Fault, error)) (check.Fault, error) {
	slot, free := t.Fleet.borrow(ctx)
	if free == nil {
		return check.Fault{}, errScheduleOver
	}
	defer free()
	fault, err := end(slot)
	if err != nil {
		return fault, err
	}
	_ = wait.For(ctx, t.little()) // shorter when the schedule is over
	return fault, t.Fleet.start(slot)
}

// outageLength is long enough for retries to be spent, if they were charged.
const outageLength = 1500 * time.Millisecond

// Outages lets the publisher of all relays reject everything on a topic for a while, one topic after the other.
func Outages(every time.Duration, least int) Fault {
	next := 0
	return Fault{
		Kind: check.BrokerDown, Every: every, Least: least,
		Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			topics := on.Env.contracts.topics()
			topic := topics[next%len(topics)]
			next++
			file := filepath.Join(on.Plan.Folder, outagesFolder, topic)
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return check.Fault{}, fmt.Errorf("torture: %w", err)
			}
			fault := check.Fault{Topic: topic, From: now()}
			_ = wait.For(ctx, outageLength) // shorter when the schedule is over
			fault.To = now()
			if err := os.Remove(file); err != nil {
				return fault, fmt.Errorf("torture: %w", err)
			}
			return fault, nil
		},
	}
}
