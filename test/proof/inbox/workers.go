package inbox

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

// orders is how a process is to end: at a passage of a point, some time after its start, or, if neither is given, when
// it is asked to.
type orders struct {
	point   string
	passage int
	after   time.Duration
}

// A workerGroup is the processes of one consumer. Whoever dies is replaced.
type workerGroup struct {
	settings

	env  *env
	size int
	// points are where they are killed, in turns, at one of the first so many passages.
	points   []string
	passages int
	// random is the longest that a process lasts that is killed at a random moment, every so manieth.
	random time.Duration
	every  int
	// most is how many are killed. 0: as many as come.
	most int

	mu      sync.Mutex
	dice    *rand.Rand
	started int
	kills   int
	gentle  bool
	running map[string]*child
	endings map[string]ending
}

// next is how the next process is to end.
func (c *workerGroup) next() (name string, o orders) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started++
	name = fmt.Sprintf("%s-%d", c.Consumer, c.started)
	switch {
	case c.gentle || c.most > 0 && c.kills >= c.most:
		return name, orders{}
	case c.every > 0 && c.started%c.every == 0:
		c.kills++
		return name, orders{after: 100*time.Millisecond + time.Duration(c.dice.Int64N(int64(c.random)))}
	case len(c.points) > 0:
		c.kills++
		o := orders{point: c.points[c.started%len(c.points)], passage: 1 + c.dice.IntN(c.passages)}
		if strings.HasPrefix(o.point, "free.") { // few events fail
			o.passage = 1
		}
		return name, o
	}
	return name, orders{}
}

// spare lets whoever is born from now on live, or not any more.
func (c *workerGroup) spare(gentle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gentle = gentle
}

// soFar are the endings so far. Who lives has done nothing special yet, but for standing still.
func (c *workerGroup) soFar() map[string]ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := maps.Clone(c.endings)
	for name := range c.running {
		list[name] = ending{Stopped: list[name].Stopped}
	}
	return list
}

// run keeps the group at its size until the context ends, and then lets everybody finish.
func (c *workerGroup) run(ctx context.Context) error {
	c.running, c.endings = map[string]*child{}, map[string]ending{}
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

// live is one process, from its start to its end.
func (c *workerGroup) live(ctx context.Context) error {
	name, o := c.next()
	point := ""
	if o.point != "" {
		point = fmt.Sprintf("%s:%d", o.point, o.passage)
	}
	p, err := start(c.env.plan.Executable, c.env.folder, task{settings: c.settings, Name: name}, point,
		c.env.plan.Environment)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.running[name] = p
	c.mu.Unlock()
	var kill <-chan time.Time
	if o.after > 0 {
		timer := time.NewTimer(o.after)
		defer timer.Stop()
		kill = timer.C
	}
	select {
	case <-p.Ended:
	case <-kill:
		err = p.Signal(os.Kill)
	case <-ctx.Done():
		err = p.leave()
	}
	if err != nil {
		return err
	}
	return c.recordEnding(p)
}

// recordEnding writes down how a process has ended.
func (c *workerGroup) recordEnding(p *child) error {
	end, err := p.ending()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, p.task.Name)
	end.Stopped = c.endings[p.task.Name].Stopped
	c.endings[p.task.Name] = end
	return nil
}

// standStill stops one of the group after the other, until what one had in hand was given to another. It tells whether
// there was one.
func (c *workerGroup) standStill(ctx context.Context, handedOn func(p *child) (bool, error)) (bool, error) {
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
		stood, err := false, p.Freeze(ctx)
		if err == nil {
			stood, err = handedOn(p)
		}
		if err := errors.Join(err, p.Signal(syscall.SIGCONT)); err != nil || stood {
			return stood, err
		}
	}
	return false, nil
}
