package order

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Leave is a relay that was asked to stop, and another that joined in its place. It explains nothing.
const Leave check.FaultKind = "leave"

// chaos does to the fleet what operators, machines and networks do.
type chaos struct {
	plan   Plan
	fleet  *fleet
	world  *world
	faults *check.Writer
	random *rand.Rand

	mu     sync.Mutex
	errors []error
	busy   map[int]bool // slots whose relay is down or stands still
	last   int          // the slot that was struck last
}

// blows is what happens to relays, over and over, unless the plan says otherwise.
var blows = []check.FaultKind{check.Kill, Leave, check.Pause, check.Kill, Leave, check.Kill, check.Pause}

// run strikes until the context ends, and returns when the whole fleet is up again.
func (c *chaos) run(ctx context.Context) error {
	var strikes sync.WaitGroup
	c.busy = map[int]bool{}
	kinds := blows
	if c.plan.Blows != nil {
		kinds = c.plan.Blows
	}
	if c.plan.Outages > 0 {
		strikes.Go(func() { c.note(c.outages(ctx)) })
	}
	for n := 0; c.plan.Calm > 0 && pause(ctx, c.plan.Calm) == nil; n++ {
		slot, found := c.victim()
		if !found {
			n-- // the blow is still to come
			continue
		}
		kind, rest := kinds[n%len(kinds)], time.Duration(200+c.random.IntN(1300))*time.Millisecond
		strikes.Go(func() {
			c.note(c.strike(kind, slot, rest))
			c.mu.Lock()
			delete(c.busy, slot)
			c.mu.Unlock()
		})
	}
	strikes.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errors) > 0 {
		return c.errors[0]
	}
	return nil
}

func (c *chaos) note(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors = append(c.errors, err)
}

// victim picks the next relay that is well. At least half of the fleet always is.
func (c *chaos) victim() (slot int, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.busy) > c.plan.Relays/2-1 {
		return 0, false
	}
	for c.last = (c.last + 1) % c.plan.Relays; c.busy[c.last]; {
		c.last = (c.last + 1) % c.plan.Relays
	}
	c.busy[c.last] = true
	return c.last, true
}

func now() int64 { return time.Now().UnixMicro() }

// strike does one thing to one relay and undoes it.
func (c *chaos) strike(kind check.FaultKind, slot int, rest time.Duration) error {
	// What was begun is finished, also when the run is interrupted: a stopped process would stay for ever.
	ctx := context.Background()
	fault := check.Fault{Kind: kind}
	switch kind {
	case check.Kill:
		p, err := c.fleet.signal(slot, os.Kill, true)
		if err != nil {
			return err
		}
		<-p.done
		fault.Relay, fault.From, fault.To = p.name, now(), now()
	case check.Pause:
		p, err := c.fleet.signal(slot, syscall.SIGSTOP, false)
		if err != nil {
			return err
		}
		fault.Relay, fault.From = p.name, now()
		_ = pause(ctx, c.plan.Lease+rest) // a background context never ends
		fault.To = now()
		if _, err := c.fleet.signal(slot, syscall.SIGCONT, false); err != nil {
			return err
		}
		return c.faults.Add(check.Record{Fault: &fault})
	default:
		fault.Relay, fault.From = c.fleet.name(slot), now()
		if err := c.fleet.leave(slot); err != nil {
			return err
		}
		fault.To = now()
	}
	if err := c.faults.Add(check.Record{Fault: &fault}); err != nil {
		return err
	}
	_ = pause(ctx, rest) // a background context never ends
	return c.fleet.start(slot)
}

func (f *fleet) name(slot int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[slot].name
}

// outageLength is long enough for retries to be spent, if they were charged.
const outageLength = 1500 * time.Millisecond

// outages lets the broker refuse a topic for a while, evenly spread over the production.
func (c *chaos) outages(ctx context.Context) error {
	topics := c.world.contracts.topics()
	for n := range c.plan.Outages {
		_ = pause(ctx, c.plan.Production/time.Duration(c.plan.Outages+1)-outageLength) // shorter when the run ends
		select {
		case <-ctx.Done():
			return nil // the producers are done
		default:
		}
		topic := topics[n%len(topics)]
		file := filepath.Join(c.plan.Folder, outagesFolder, topic)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return fmt.Errorf("order: %w", err)
		}
		fault := check.Fault{Kind: check.BrokerDown, Topic: topic, From: now()}
		_ = pause(ctx, outageLength) // shorter when the run ends
		fault.To = now()
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("order: %w", err)
		}
		if err := c.faults.Add(check.Record{Fault: &fault}); err != nil {
			return err
		}
	}
	return nil
}
