package inboxstorm

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

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/consumer/natsjetstream"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/cluster"
)

// The defaults of a crew. Waits are shorter than the half minute of production, so that a proof does not take hours, and long
// enough that a busy machine is not taken for a dead process.
const (
	ackWait     = 3 * time.Second
	holdTime    = 3 * time.Second
	concurrency = 4
	attempts    = 4
)

// A stage is a stream of events and the crews that handle them.
type stage struct {
	world  *world
	name   string
	events []event
	order  []int
	crews  []*crew
	redis  string
	forgot []time.Time
}

func (w *world) newStage(name string, n int, kinds map[kind]int) *stage {
	s := &stage{world: w, name: name, redis: w.redis.Address}
	s.events, s.order = deal(rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), n, kinds)
	return s
}

// takes makes every effect take so long.
func (s *stage) takes(length time.Duration) {
	for i := range s.events {
		s.events[i].Takes = length
	}
}

func (s *stage) stream() string  { return s.world.run + "-" + s.name }
func (s *stage) subject() string { return s.world.run + "." + s.name }

// hire adds a crew. What it is told can be changed until the scene is played.
func (s *stage) hire(consumer string, form form, size int) *crew {
	name := s.name + "-" + consumer
	c := &crew{world: s.world, size: size, passages: s.world.plan.Passages, settings: settings{
		Consumer: name, Form: form, Database: s.world.plan.Postgres, Schema: s.world.run, Redis: s.redis, NATS: s.world.plan.Broker,
		Stream: s.stream(), DeadLetters: s.world.run + ".dead." + name,
		AckWait: ackWait, Hold: holdTime, Concurrency: concurrency, MaxAttempts: attempts,
	}}
	if wrong, is := s.world.plan.Wrong[form]; is {
		c.settings.Form = wrong
	}
	s.crews = append(s.crews, c)
	return c
}

// play opens the stream, lets the crews work while the script runs, and returns what each of them did.
func (s *stage) play(ctx context.Context, script func(ctx context.Context) error) (histories []*history, err error) {
	if err := s.world.createStream(ctx, s.stream(), s.subject()); err != nil {
		return nil, err
	}
	defer func() {
		if deleting := s.world.js.DeleteStream(context.WithoutCancel(ctx), s.stream()); deleting != nil {
			err = errors.Join(err, fmt.Errorf("inboxstorm: delete the stream: %w", deleting))
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	working, leave := context.WithCancel(ctx)
	defer leave()
	group, working := errgroup.WithContext(working)
	for _, c := range s.crews {
		group.Go(func() error { return c.run(working) })
	}
	failed := script(working)
	leave()
	if err := errors.Join(failed, group.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for _, c := range s.crews {
		h, err := s.history(ctx, c)
		if err != nil {
			return nil, err
		}
		histories = append(histories, h)
	}
	return histories, nil
}

// open makes the stream's consumers.
func (s *stage) open(ctx context.Context) error {
	for _, c := range s.crews {
		made, err := consumer.New(c.config(), consumer.OnType(eventType, func(context.Context, *consumer.Event) error { return nil })) // for its name
		if err != nil {
			return err
		}
		config := natsjetstream.ConsumerConfig(made)
		config.AckWait = c.AckWait
		if _, err := s.world.js.CreateConsumer(ctx, s.stream(), config); err != nil {
			return fmt.Errorf("inboxstorm: create the consumer %s: %w", c.Consumer, err)
		}
	}
	return nil
}

// publishAndDrain is the script of a scene in which nothing is done but to publish and to wait.
func (s *stage) publishAndDrain(ctx context.Context) error {
	if err := s.publish(ctx, s.order); err != nil {
		return err
	}
	return s.drain(ctx)
}

// atWork publishes copies and returns when every crew has handled one of them, and is at work on the others.
func (s *stage) atWork(ctx context.Context, order []int) error {
	before := map[*crew]uint64{}
	for _, c := range s.crews {
		info, err := s.durable(ctx, c)
		if err != nil {
			return err
		}
		before[c] = info.AckFloor.Consumer
	}
	if err := s.publish(ctx, order); err != nil {
		return err
	}
	for _, c := range s.crews {
		err := cluster.Until(ctx, c.Consumer+" is at work", func() (bool, error) {
			info, err := s.durable(ctx, c)
			return err != nil || info.AckFloor.Consumer > before[c], err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// durable asks the broker about a crew.
func (s *stage) durable(ctx context.Context, c *crew) (*jetstream.ConsumerInfo, error) {
	durable, err := s.world.js.Consumer(ctx, s.stream(), c.Consumer)
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: ask for the consumer %s: %w", c.Consumer, err)
	}
	return durable.CachedInfo(), nil // it was asked just now
}

// left is what the broker has for a crew: what it has not delivered, and what is not acknowledged.
func (s *stage) left(ctx context.Context, c *crew) (waiting, unacknowledged int, err error) {
	info, err := s.durable(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	return int(info.NumPending), info.NumAckPending, nil
}

// drain waits until everything is acknowledged, or patience is over. Nobody new is killed once everything was delivered.
func (s *stage) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.world.plan.Patience)
	defer cancel()
	for wait.For(ctx, 200*time.Millisecond) == nil {
		drained := true
		for _, c := range s.crews {
			waiting, unacknowledged, err := s.left(ctx, c)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			if waiting == 0 {
				c.calmDown()
			}
			drained = drained && waiting+unacknowledged == 0
		}
		if drained {
			return nil
		}
	}
	return nil // the judge sees what is left
}

// history collects what a crew did.
func (s *stage) history(ctx context.Context, c *crew) (h *history, err error) {
	h = &history{Consumer: c.Consumer, Form: c.Form, Hold: c.Hold, Events: s.events, Forgot: s.forgot, Endings: c.endings, Lines: map[string][]line{}}
	waiting, unacknowledged, err := s.left(ctx, c)
	if err != nil {
		return nil, err
	}
	h.Left = waiting + unacknowledged
	if h.Effects, err = s.world.effects(ctx, c.Consumer); err != nil {
		return nil, err
	}
	if h.Dead, err = s.world.deadLetters(ctx, c.DeadLetters); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.endings)) {
		file := filepath.Join(s.world.folder, name+".journal")
		if h.Lines[name], err = readJournal(file); err != nil {
			return nil, err
		}
	}
	return h, nil
}
