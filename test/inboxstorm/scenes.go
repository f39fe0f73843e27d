package inboxstorm

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/wait"
)

// The names of the scenes.
const (
	theStorm      = "storm"
	theOneCall    = "onecall"
	theStandstill = "standstill"
	theForgetting = "forgetting"
	theSlow       = "slow"
	theHopeless   = "hopeless"
)

// The points at which consumers of each form are killed.
var (
	postgresPoints = []string{"first.before", "first.after", "effect.after", "emit.before_commit", "emit.after_commit"}
	redisPoints    = []string{"hold.before", "hold.after", "effect.after", "mark.before", "mark.after", "free.before", "free.after"}
)

// storm: thousands of events with copies, for a consumer with the inbox in PostgreSQL and for one with the guard in Redis, and
// all of their processes are killed all the time.
func (w *world) storm(ctx context.Context) ([]*history, error) {
	s := w.newStage(theStorm, w.plan.Events, map[kind]int{fails: 1, broken: 5})
	postgres, redis := s.hire("postgres", inPostgres, 3), s.hire("redis", inRedis, 4)
	postgres.points, postgres.every = postgresPoints, 6
	// One event at a time in a process, so that a kill comes between the effect and the mark of one event at most.
	redis.points, redis.every, redis.Concurrency = redisPoints, 8, 1
	for _, c := range s.crews {
		c.random = 500 * time.Millisecond
	}
	return s.play(ctx, s.publishAndDrain)
}

// oneCall: consumers that mark in one call are killed between mark and effect, and others that have a guard at the same place. One
// event at a time, so that every death costs one event.
func (w *world) oneCall(ctx context.Context) ([]*history, error) {
	s := w.newStage(theOneCall, 15*w.plan.Lost, nil)
	s.hire("marked", oneCall, 2).points = []string{"check.after"}
	s.hire("guarded", inRedis, 2).points = []string{"hold.after"}
	for _, c := range s.crews {
		c.Concurrency, c.most, c.passages = 1, w.plan.Lost, 5
	}
	return s.play(ctx, s.publishAndDrain)
}

// standstill: processes stand still in the middle of their work for longer than their holds last and the broker waits, and their
// handlers, which heed nothing, go on when they wake up.
func (w *world) standstill(ctx context.Context) ([]*history, error) {
	const each = 60
	s := w.newStage(theStandstill, each*w.plan.Stills, nil)
	s.takes(100 * time.Millisecond)
	s.hire("postgres", inPostgres, 2).Heedless = true
	s.hire("redis", inRedis, 2).Heedless = true
	return s.play(ctx, func(ctx context.Context) error {
		for part := range slices.Chunk(s.order, len(s.order)/w.plan.Stills) {
			if err := s.atWork(ctx, part); err != nil {
				return err
			}
			var group errgroup.Group
			for _, c := range s.crews {
				group.Go(func() error { return c.standStill(ctx, 2*ackWait) })
			}
			if err := group.Wait(); err != nil {
				return err
			}
		}
		return s.drain(ctx)
	})
}

// forgetting: Redis dies, is away for longer than a hold, and comes back without a memory; and then copies come of everything
// that was handled before.
func (w *world) forgetting(ctx context.Context) (_ []*history, err error) {
	s := w.newStage(theForgetting, 300, nil)
	s.takes(30 * time.Millisecond)
	for i := range s.events {
		s.events[i].Copies *= w.plan.Outages
	}
	redis, err := newRedis(w.folder)
	if err != nil {
		return nil, err
	}
	if err := redis.Start(ctx); err != nil {
		return nil, err
	}
	defer redis.Close()
	s.redis = redis.Address
	s.hire("postgres", inPostgres, 2)
	s.hire("redis", inRedis, 2)
	return s.play(ctx, func(ctx context.Context) error {
		for range w.plan.Outages {
			if err := s.atWork(ctx, s.order); err != nil {
				return err
			}
			if err := redis.End(os.Kill); err != nil {
				return err
			}
			_ = wait.For(ctx, 2*holdTime)
			s.forgot = append(s.forgot, time.Now())
			if err := redis.Start(ctx); err != nil {
				return err
			}
			if err := s.drain(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// slow: handlers take more than twice as long as the broker waits for a word, and as a hold lasts. Nobody is killed, and no
// message may come again.
func (w *world) slow(ctx context.Context) ([]*history, error) {
	const wait = 2 * ackWait // here nobody may be late
	s := w.newStage(theSlow, w.plan.Slow, nil)
	s.takes(wait*2 + wait/2)
	s.order = s.order[:0]
	for i := range s.events {
		s.events[i].Copies, s.order = 1, append(s.order, i)
	}
	for _, c := range []*crew{s.hire("postgres", inPostgres, 2), s.hire("redis", inRedis, 2)} {
		c.AckWait, c.Hold, c.Concurrency = wait, wait, 8
	}
	return s.play(ctx, s.publishAndDrain)
}

// hopeless: a few events can never be handled, some of which say so. They go to the dead letters, after so many attempts or at
// once, and the others go on.
func (w *world) hopeless(ctx context.Context) ([]*history, error) {
	s := w.newStage(theHopeless, 60, map[kind]int{broken: 3, poison: 2})
	s.hire("postgres", inPostgres, 2)
	s.hire("redis", inRedis, 2)
	return s.play(ctx, s.publishAndDrain)
}
