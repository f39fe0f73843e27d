package inboxstorm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// orders is how a life is to end: at a passage of a point, some time after its start, or, if neither is given, when it is asked to.
type orders struct {
	point   string
	passage int
	after   time.Duration
}

// A crew is the processes of one consumer. Whoever dies is replaced.
type crew struct {
	settings

	world *world
	size  int
	// points are where they are killed, in turns, at one of the first so many passages.
	points   []string
	passages int
	// random is the longest that a life lasts that is killed at a random moment, every so manieth.
	random time.Duration
	every  int
	// most is how many are killed. 0: as many as come.
	most int

	mu      sync.Mutex
	dice    *rand.Rand
	lives   int
	kills   int
	calm    bool
	running map[string]*process
	endings map[string]ending
}

// next is how the next life is to end.
func (c *crew) next() (name string, o orders) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives++
	name = fmt.Sprintf("%s-%d", c.Consumer, c.lives)
	switch {
	case c.calm || c.most > 0 && c.kills >= c.most:
		return name, orders{}
	case c.every > 0 && c.lives%c.every == 0:
		c.kills++
		return name, orders{after: 100*time.Millisecond + time.Duration(c.dice.Int64N(int64(c.random)))}
	case len(c.points) > 0:
		c.kills++
		o := orders{point: c.points[c.lives%len(c.points)], passage: 1 + c.dice.IntN(c.passages)}
		if strings.HasPrefix(o.point, "free.") { // few events fail
			o.passage = 1
		}
		return name, o
	}
	return name, orders{}
}

// calmDown lets whoever is born from now on live, or not any more.
func (c *crew) calmDown(calm bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = calm
}

// soFar are the endings so far. Who lives has done nothing special yet, but for standing still.
func (c *crew) soFar() map[string]ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := maps.Clone(c.endings)
	for name := range c.running {
		list[name] = ending{Stopped: list[name].Stopped}
	}
	return list
}

// run keeps the crew at its size until the context ends, and then lets everybody finish.
func (c *crew) run(ctx context.Context) error {
	c.running, c.endings = map[string]*process{}, map[string]ending{}
	var group errgroup.Group
	for range c.size {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := c.live(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// leaveTime is how long a process that was asked to stop may take. Much more than it needs.
const leaveTime = 90 * time.Second

// live is one life, from its birth to its end.
func (c *crew) live(ctx context.Context) error {
	name, o := c.next()
	point := ""
	if o.point != "" {
		point = fmt.Sprintf("%s:%d", o.point, o.passage)
	}
	p, err := start(c.world.plan.Executable, c.world.folder, life{settings: c.settings, Name: name}, point, c.world.plan.Environment)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.running[name] = p
	c.mu.Unlock()
	var strike <-chan time.Time
	if o.after > 0 {
		timer := time.NewTimer(o.after)
		defer timer.Stop()
		strike = timer.C
	}
	select {
	case <-p.done:
	case <-strike:
		err = p.signal(os.Kill)
	case <-ctx.Done():
		err = p.leave()
	}
	if err != nil {
		return err
	}
	return c.buried(p)
}

// leave asks a process to stop and waits until it has.
func (p *process) leave() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	limit := time.NewTimer(leaveTime)
	defer limit.Stop()
	select {
	case <-p.done:
		p.asked = true
		return nil
	case <-limit.C:
		_ = p.command.Process.Kill() // it may have ended just now
		<-p.done
		return fmt.Errorf("inboxstorm: %s was asked to stop and did not within %s", p.life.Name, leaveTime)
	}
}

// buried writes down how a life has ended.
func (c *crew) buried(p *process) error {
	end, err := p.ending()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, p.life.Name)
	end.Stopped = c.endings[p.life.Name].Stopped
	c.endings[p.life.Name] = end
	return nil
}

// standStill stops one of the crew after the other, until what one had in hand was given to another. It tells whether
// there was one.
func (c *crew) standStill(ctx context.Context, handedOn func(p *process) (bool, error)) (bool, error) {
	c.mu.Lock()
	names := slices.Sorted(maps.Keys(c.running))
	c.dice.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	c.mu.Unlock()
	for _, name := range names {
		c.mu.Lock()
		p := c.running[name]
		if p != nil {
			c.endings[name] = ending{Stopped: true}
		}
		c.mu.Unlock()
		if p == nil {
			continue
		}
		stood, err := false, p.stop(ctx)
		if err == nil {
			stood, err = handedOn(p)
		}
		if err := errors.Join(err, p.signal(syscall.SIGCONT)); err != nil || stood {
			return stood, err
		}
	}
	return false, nil
}
