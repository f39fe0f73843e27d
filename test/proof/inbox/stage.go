package inbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// The defaults of a group. Waits are shorter than the half minute of production, so that a proof does not take hours,
// and long enough that a busy machine is not taken for a dead process.
const (
	ackWait     = 3 * time.Second
	holdTime    = 3 * time.Second
	concurrency = 4
	attempts    = 4
)

// A stage is a stream of events and the crews that handle them.
type stage struct {
	env    *env
	name   string
	events []event
	order  []int
	groups []*workerGroup
	redis  string
	forgot []time.Time
	random *rand.Rand
	// long is how long every effect takes. 0: as it was dealt.
	long time.Duration
}

func (w *env) newStage(name string, n int, kinds map[kind]int) *stage {
	s := &stage{
		env: w, name: name, redis: w.redis.Address, random: rand.New(rand.NewPCG(1, uint64(slices.Index(Scenarios(), name)))),
	}
	s.events, s.order = shuffle(s.random, n, kinds)
	return s
}

// takes makes every effect take so long.
func (s *stage) takes(length time.Duration) {
	s.long = length
	for i := range s.events {
		s.events[i].Takes = length
	}
}

// more deals more events, and returns the order in which they are to be published.
func (s *stage) more(n int, kinds map[kind]int) []int {
	events, order := shuffle(s.random, n, kinds)
	for i := range order {
		order[i] += len(s.events)
	}
	for _, e := range events {
		if s.long > 0 {
			e.Takes = s.long
		}
		s.events = append(s.events, e)
	}
	return order
}

func (s *stage) stream() string  { return s.env.run + "-" + s.name }
func (s *stage) subject() string { return s.env.run + "." + s.name }

// hire adds a group. What it is told can be changed until the scenario is played.
func (s *stage) hire(consumer string, form form, size int) *workerGroup {
	name := s.name + "-" + consumer
	c := &workerGroup{
		env: s.env, size: size, passages: s.env.plan.Passages, dice: rand.New(rand.NewPCG(s.random.Uint64(), 1)),
		settings: settings{
			Consumer: name, Form: form, Database: s.env.plan.Postgres, Schema: s.env.run, Redis: s.redis,
			NATS:   s.env.plan.Broker,
			Stream: s.stream(), DeadLetters: s.env.run + ".dead." + name,
			AckWait: ackWait, Hold: holdTime, Concurrency: concurrency, MaxAttempts: attempts,
		},
	}
	if wrong, is := s.env.plan.Wrong[form]; is {
		c.settings.Form = wrong
	}
	s.groups = append(s.groups, c)
	return c
}

// play opens the stream, lets the crews work while the script runs, and returns what each of them did.
func (s *stage) play(ctx context.Context, script func(ctx context.Context) error) (histories []*history, err error) {
	if err := s.env.createStream(ctx, s.stream(), s.subject()); err != nil {
		return nil, err
	}
	defer func() {
		if deleting := s.env.js.DeleteStream(context.WithoutCancel(ctx), s.stream()); deleting != nil {
			err = errors.Join(err, fmt.Errorf("inbox proof: delete the stream: %w", deleting))
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	working, leave := context.WithCancel(ctx)
	defer leave()
	group, working := errgroup.WithContext(working)
	for _, c := range s.groups {
		group.Go(func() error { return c.run(working) })
	}
	failed := script(working)
	leave()
	if err := errors.Join(failed, group.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return s.histories(ctx)
}

// histories are what the crews have done so far.
func (s *stage) histories(ctx context.Context) (histories []*history, err error) {
	for _, c := range s.groups {
		h, err := s.history(ctx, c)
		if err != nil {
			return nil, err
		}
		histories = append(histories, h)
	}
	return histories, nil
}

// enough tells whether the scenario has shown enough so far, as the must has it that only says what was too little.
func (s *stage) enough(ctx context.Context, must func(r *Report, failf fail)) (bool, error) {
	histories, err := s.histories(ctx)
	if err != nil {
		return false, err
	}
	r := &Report{plan: s.env.plan, Tallies: map[string]*tally{}}
	for _, h := range histories {
		r.Tallies[h.Consumer] = check(h)
	}
	if r.plan.enough != nil {
		return r.plan.enough(r.Tallies), nil
	}
	short := false
	must(r, func(string, string, ...any) { short = true })
	return !short, nil
}

// open makes the stream's consumers.
func (s *stage) open(ctx context.Context) error {
	for _, c := range s.groups {
		// The consumer is made for its name.
		made, err := consumer.New(c.config(), consumer.OnType(eventType, func(context.Context, *consumer.Event) error {
			return nil
		}))
		if err != nil {
			return err
		}
		config := natsjetstream.PullConsumer(made)
		config.AckWait = c.AckWait
		if _, err := s.env.js.CreateConsumer(ctx, s.stream(), config); err != nil {
			return fmt.Errorf("inbox proof: create the consumer %s: %w", c.Consumer, err)
		}
	}
	return nil
}

// publishAndDrain is the script of a scenario in which nothing is done but to publish and to wait.
func (s *stage) publishAndDrain(ctx context.Context) error {
	if err := s.publish(ctx, s.order); err != nil {
		return err
	}
	return s.drain(ctx)
}

// atWork publishes copies and returns when every group has handled one of them, and is at work on the others.
func (s *stage) atWork(ctx context.Context, order []int) error {
	before := map[*workerGroup]uint64{}
	for _, c := range s.groups {
		info, err := s.durable(ctx, c)
		if err != nil {
			return err
		}
		before[c] = info.AckFloor.Consumer
	}
	if err := s.publish(ctx, order); err != nil {
		return err
	}
	for _, c := range s.groups {
		err := eventually.Within(ctx, s.env.plan.Patience, c.Consumer+" is at work", func() (bool, error) {
			info, err := s.durable(ctx, c)
			return err != nil || info.AckFloor.Consumer > before[c], err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// durable asks the broker about a group.
func (s *stage) durable(ctx context.Context, c *workerGroup) (*jetstream.ConsumerInfo, error) {
	durable, err := s.env.js.Consumer(ctx, s.stream(), c.Consumer)
	if err != nil {
		return nil, fmt.Errorf("inbox proof: ask for the consumer %s: %w", c.Consumer, err)
	}
	return durable.CachedInfo(), nil // it was asked just now
}

// left is what the broker has for a group: what it has not delivered, and what is not acknowledged.
func (s *stage) left(ctx context.Context, c *workerGroup) (waiting, unacknowledged int, err error) {
	info, err := s.durable(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	return int(info.NumPending), info.NumAckPending, nil
}

// drain waits until everything is acknowledged, or until it has not become less for as long as the patience lasts.
// Nobody new is killed once everything was delivered.
func (s *stage) drain(ctx context.Context) error {
	for least, since := -1, time.Now(); ; {
		left := 0
		for _, c := range s.groups {
			waiting, unacknowledged, err := s.left(ctx, c)
			if err != nil {
				return err
			}
			c.spare(waiting == 0)
			left += waiting + unacknowledged
		}
		if least < 0 || left < least {
			least, since = left, time.Now()
		}
		if left == 0 || time.Since(since) > s.env.plan.Patience {
			return nil // the checker sees what is left
		}
		if err := wait.For(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// handedOn waits until what a stopped process has in hand was given to another: one that has a guard in Redis works on
// it then, and one with the inbox in PostgreSQL waits. It tells whether the process had anything in hand.
func (s *stage) handedOn(ctx context.Context, c *workerGroup, p *child) (had bool, err error) {
	lines, err := readJournal(p.task.Journal)
	if err != nil {
		return false, err
	}
	holds := heldBy(lines)
	if c.Form == inRedis && len(holds) == 0 {
		return false, nil
	}
	err = eventually.Within(ctx, s.env.plan.Patience, "another takes over from "+p.task.Name, func() (bool, error) {
		info, err := s.durable(ctx, c)
		if err != nil {
			return true, err
		}
		had = info.NumRedelivered > 0
		if c.Form == inRedis {
			effects, err := s.env.effects(ctx, c.Consumer)
			if err != nil {
				return true, err
			}
			had = slices.ContainsFunc(effects, func(e effect) bool {
				return slices.Contains(holds, e.Event) && e.Worker != p.task.Name
			})
		}
		return had || info.NumPending == 0 && info.NumAckPending == 0, nil // it may have been about to say that it is done
	})
	return had, err
}

// history collects what a group did.
func (s *stage) history(ctx context.Context, c *workerGroup) (h *history, err error) {
	h = &history{
		Consumer: c.Consumer, Form: c.Form, Hold: c.Hold, Events: s.events, Forgot: s.forgot, Endings: c.soFar(),
		Lines: map[string][]line{},
	}
	waiting, unacknowledged, err := s.left(ctx, c)
	if err != nil {
		return nil, err
	}
	h.Left = waiting + unacknowledged
	if h.Effects, err = s.env.effects(ctx, c.Consumer); err != nil {
		return nil, err
	}
	if h.Dead, err = s.env.deadLetters(ctx, c.DeadLetters); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Endings)) {
		file := filepath.Join(s.env.folder, name+".journal")
		if h.Lines[name], err = readJournal(file); err != nil {
			return nil, err
		}
	}
	return h, nil
}
