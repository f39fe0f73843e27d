package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// BrokerSlow is a broker whose answers take long, and come.
const BrokerSlow check.FaultKind = "broker_slow"

// BrokerAway keeps the relays' publishers from refusing events in the broker's name, until back is called. A fault that
// takes the broker away says so first: an event that is refused and charged meanwhile is one for the checker.
func (t *Target) BrokerAway() (back func() error, err error) {
	file := filepath.Join(t.Plan.Folder, awayFile)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, fmt.Errorf("torture: %w", err)
	}
	return func() error {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("torture: %w", err)
		}
		return nil
	}, nil
}

// BrokerCuts cuts all connections to the broker through this proxy at once.
func BrokerCuts(p *proxy.Proxy, every time.Duration, least int) Fault {
	return Fault{
		Kind: check.BrokerCut, Every: every, Least: least, Inject: func(context.Context, *Target) (check.Fault, error) {
			since := now()
			if p.HangUp() == 0 {
				return check.Fault{}, ErrMissed
			}
			return check.Fault{Since: since, From: now()}, nil
		},
	}
}

// BrokerStalls lets all connections to the broker carry nothing for about so long, and hangs up then.
func BrokerStalls(p *proxy.Proxy, length, every time.Duration, least int) Fault {
	return Fault{
		Kind: check.BrokerStalled, Every: every, Least: least,
		Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			fault := check.Fault{From: now()}
			standing, cancel := context.WithTimeout(ctx, length/2+time.Duration(on.Random.Int64N(int64(length))))
			defer cancel()
			if p.StallAll(standing) == 0 {
				return check.Fault{}, ErrMissed
			}
			return fault, nil
		},
	}
}

// SlowBroker lets the broker's answers be late by that much for a while.
func SlowBroker(p *proxy.Proxy, by, length, every time.Duration, least int) Fault {
	return Fault{
		Kind: BrokerSlow, Every: every, Least: least, Inject: func(ctx context.Context, _ *Target) (check.Fault, error) {
			p.Slow(by)
			defer p.Slow(0)
			_ = wait.For(ctx, length) // shorter when the schedule is over
			return check.Fault{Detail: fmt.Sprintf("by %s", by)}, nil
		},
	}
}
