package inbox

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// The names of the scenarios.
const (
	theKilling    = "killing"
	theOneCall    = "onecall"
	theStandstill = "standstill"
	theForgetting = "forgetting"
	theSlow       = "slow"
	theHopeless   = "hopeless"
)

// The points at which consumers of each form are killed.
var (
	postgresPoints = []string{"first.before", "first.after", "effect.after", "emit.before_commit", "emit.after_commit"}
	redisPoints    = []string{
		"hold.before", "hold.after", "effect.after", "mark.before", "mark.after", "free.before", "free.after",
	}
)

// killing: thousands of events with copies, for a consumer with the inbox in PostgreSQL and for one with the guard in
// Redis, and all of their processes are killed all the time.
func (w *env) killing(ctx context.Context) ([]*history, error) {
	s := w.newStage(theKilling, w.plan.Events, map[kind]int{fails: 1, broken: 5})
	postgres, redis := s.hire("postgres", inPostgres, 3), s.hire("redis", inRedis, 4)
	postgres.points, postgres.every = postgresPoints, 6
	// One event at a time in a process, so that a kill comes between the effect and the mark of one event at most.
	redis.points, redis.every, redis.Concurrency = redisPoints, 8, 1
	for _, c := range s.groups {
		c.random = 500 * time.Millisecond
	}
	return s.play(ctx, func(ctx context.Context) error { return s.untilEnough(ctx, (*Report).mustOfKilling) })
}

// portions is how many times a scenario is made longer, by a quarter, before it is said that too little was tested.
const portions = 8

// untilEnough publishes and waits, and goes on with more events until it was enough.
func (s *stage) untilEnough(ctx context.Context, must func(r *Report, failf fail)) error {
	first := len(s.events)
	for portion := 0; ; portion++ {
		if err := s.publishAndDrain(ctx); err != nil {
			return err
		}
		enough, err := s.enough(ctx, must)
		if err != nil || enough || portion == portions {
			return err
		}
		s.order = s.more(max(first/4, 20), map[kind]int{fails: 1})
	}
}

// oneCall: consumers that mark in one call are killed between mark and effect, and others that have a guard at the same
// place. One event at a time, so that every death costs one event.
func (w *env) oneCall(ctx context.Context) ([]*history, error) {
	s := w.newStage(theOneCall, 15*w.plan.Lost, nil)
	s.hire("marked", oneCall, 2).points = []string{"check.after"}
	s.hire("guarded", inRedis, 2).points = []string{"hold.after"}
	for _, c := range s.groups {
		c.Concurrency, c.most, c.passages = 1, w.plan.Lost, 5
	}
	return s.play(ctx, func(ctx context.Context) error { return s.untilEnough(ctx, (*Report).mustOfOneCall) })
}

// standstill: processes stand still in the middle of their work, until their holds have ended and the broker has given
// what they had in hand to others, and their handlers, which heed nothing, go on when they wake up.
func (w *env) standstill(ctx context.Context) ([]*history, error) {
	const each = 60
	s := w.newStage(theStandstill, 0, nil)
	s.takes(100 * time.Millisecond)
	s.hire("postgres", inPostgres, 2).Heedless = true
	s.hire("redis", inRedis, 2).Heedless = true
	return s.play(ctx, func(ctx context.Context) error {
		stood := make([]int, len(s.groups))
		for part := range w.plan.Stills + portions {
			if err := s.atWork(ctx, s.more(each, nil)); err != nil {
				return err
			}
			if err := s.standStill(ctx, stood); err != nil {
				return err
			}
			if slices.Min(stood) < w.plan.Stills && part+1 < w.plan.Stills+portions {
				continue
			}
			if err := s.drain(ctx); err != nil {
				return err
			}
			if enough, err := s.enough(ctx, (*Report).mustOfStandstill); err != nil || enough {
				return err
			}
		}
		return nil
	})
}

// standStill has one process of each group stand still, and counts for each whether it was in the middle of its work.
func (s *stage) standStill(ctx context.Context, stood []int) error {
	var group errgroup.Group
	for i, c := range s.groups {
		group.Go(func() error {
			hit, err := c.standStill(ctx, func(p *child) (bool, error) { return s.handedOn(ctx, c, p) })
			if hit {
				stood[i]++
			}
			return err
		})
	}
	return group.Wait()
}

// forgetting: Redis dies, is away for longer than a hold, and comes back without a memory; and then copies come of
// everything that was handled before.
func (w *env) forgetting(ctx context.Context) (_ []*history, err error) {
	s := w.newStage(theForgetting, 300, nil)
	s.takes(30 * time.Millisecond)
	redis, err := server.NewRedis(w.folder, "--maxmemory-policy", "noeviction")
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
	copies := make([]int, len(s.events))
	for i := range s.events {
		copies[i] = s.events[i].Copies
	}
	return s.play(ctx, func(ctx context.Context) error {
		for outage := range w.plan.Outages + portions {
			for i := range s.events {
				s.events[i].Copies = copies[i] * (outage + 1)
			}
			if err := s.outage(ctx, redis); err != nil {
				return err
			}
			if outage+1 < w.plan.Outages {
				continue
			}
			if enough, err := s.enough(ctx, (*Report).mustOfForgetting); err != nil || enough {
				return err
			}
		}
		return nil
	})
}

// outage has Redis die in the middle of the work and come back empty after the holds have ended, and waits for the
// rest.
func (s *stage) outage(ctx context.Context, redis *server.Server) error {
	if err := s.atWork(ctx, s.order); err != nil {
		return err
	}
	if err := redis.End(os.Kill); err != nil {
		return err
	}
	_ = wait.For(ctx, holdTime*5/4)
	s.forgot = append(s.forgot, time.Now())
	if err := redis.Start(ctx); err != nil {
		return err
	}
	return s.drain(ctx)
}

// slow: handlers take more than twice as long as the broker waits for a word, and as a hold lasts. Nobody is killed,
// and no message may come again.
func (w *env) slow(ctx context.Context) ([]*history, error) {
	const wait = 2 * ackWait // here nobody may be late
	s := w.newStage(theSlow, w.plan.Slow, nil)
	s.takes(wait*2 + wait/2)
	s.order = s.order[:0]
	for i := range s.events {
		s.events[i].Copies, s.order = 1, append(s.order, i)
	}
	for _, c := range []*workerGroup{s.hire("postgres", inPostgres, 2), s.hire("redis", inRedis, 2)} {
		c.AckWait, c.Hold, c.Concurrency = wait, wait, 8
	}
	return s.play(ctx, s.publishAndDrain)
}

// hopeless: a few events can never be handled, some of which say so. They go to the dead letters, after so many
// attempts or at once, and the others go on.
func (w *env) hopeless(ctx context.Context) ([]*history, error) {
	s := w.newStage(theHopeless, 60, map[kind]int{broken: 3, poison: 2})
	s.hire("postgres", inPostgres, 2)
	s.hire("redis", inRedis, 2)
	return s.play(ctx, s.publishAndDrain)
}
