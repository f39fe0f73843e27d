package pubsub

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// chaos sends and handles events while connections break, and counts what came of them.
func (s *site) chaos(ctx context.Context, report *Report) (err error) {
	// The consumer fails now and then; the observer never does, and sees what order there is.
	topic, observed := s.prefix+"-chaos", s.prefix+"-observer"
	if err := errors.Join(s.createTopic(ctx, topic), s.subscribe(ctx, topic, topic, ""),
		s.subscribe(ctx, observed, topic, "")); err != nil {
		return err
	}
	worker := newLedger(func(event *consumer.Event, try int) error {
		if event.Seq%50 == 0 && try == 1 {
			return errByPlan
		}
		return nil
	})
	observer := newLedger(func(*consumer.Event, int) error { return nil })
	over := s.wire
	if s.plan.SpareConsumer {
		over = nil
	}
	stopWorker, err := s.start(ctx, over, worker.handle,
		googlepubsub.ConsumeConfig{Subscription: topic, RetryPolicy: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopWorker()) }()
	stopObserver, err := s.start(ctx, nil, observer.handle,
		googlepubsub.ConsumeConfig{Subscription: observed, RetryPolicy: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopObserver()) }()
	sent, err := s.flow(ctx, topic, report)
	if err != nil {
		return err
	}
	report.Events = sent
	s.sayf("%d events are sent; %d are handled, and %d observed; now the rest", sent, worker.effects(), observer.effects())
	if err := eventually.Within(ctx, 5*time.Minute, "every event is handled", func() (bool, error) {
		return worker.effects() >= sent && observer.effects() >= sent, nil
	}); err != nil {
		s.sayf("%v", err)
	}
	report.Lost, report.Unobserved = max(0, sent-worker.effects()), max(0, sent-observer.effects())
	report.Order = observer.disorder()
	worker.mu.Lock()
	defer worker.mu.Unlock()
	report.Copies = worker.copies
	return nil
}

// flow publishes events of every aggregate, one after the other, while connections break, and returns how many Pub/Sub
// has acknowledged: all.
func (s *site) flow(ctx context.Context, topic string, report *Report) (sent int, err error) {
	publisher, closeIt, err := s.publisher(ctx, googlepubsub.PublisherConfig{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	during, over := context.WithTimeout(ctx, s.plan.Chaos)
	defer over()
	var acknowledged atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, s.plan.Keys)
	for key := range s.plan.Keys {
		group.Go(func() {
			for number := int64(1); during.Err() == nil || acknowledged.Load() < fewestEvents; number++ {
				if err := send(ctx, publisher, relaytest.NewMessage(topic, key, number)); err != nil {
					failures <- err
					return
				}
				acknowledged.Add(1)
				_ = wait.For(ctx, 50*time.Millisecond) // a rate that nobody's quota minds
			}
		})
	}
	s.breakThings(ctx, during, report)
	group.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return int(acknowledged.Load()), err
}

// breakThings breaks connections, in each way once at least, until during ends, and leaves them whole.
func (s *site) breakThings(ctx, during context.Context, report *Report) {
	chance := rand.New(rand.NewPCG(s.plan.Seed, 0))
	defer s.wire.heal()
	for turn := 0; turn < 3 || during.Err() == nil; turn++ {
		if wait.For(ctx, s.plan.Pause/2+time.Duration(chance.Int64N(int64(s.plan.Pause/2)))) != nil {
			return
		}
		lasts := s.plan.Pause/4 + time.Duration(chance.Int64N(int64(s.plan.Pause/2)))
		switch turn % 3 {
		case 0:
			s.wire.cut()
			report.Cuts++
			continue
		case 1:
			s.wire.block()
			report.Outages++
		case 2:
			s.wire.hush()
			report.Silences++
		}
		_ = wait.For(ctx, lasts) // the next wait ends it
		if turn%6 == 5 {
			s.wire.cut() // what was kept back is lost
		}
		s.wire.heal()
	}
}
