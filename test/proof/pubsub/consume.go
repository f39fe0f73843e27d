package pubsub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// eventType is that of relaytest's messages.
const eventType = "order.placed"

var errByPlan = errors.New("it fails by plan")

// A ledger is an inbox and its effects in memory, and what a handler saw.
type ledger struct {
	mu     sync.Mutex
	effect map[outbox.ID]int
	newest map[string]int64   // of each aggregate, as inbox.Newer keeps it
	firsts map[string][]int64 // of each aggregate, the numbers of first deliveries as they came
	copies int                // deliveries of what was handled before
	fail   func(*consumer.Event, int) error
	tries  map[outbox.ID]int
}

func newLedger(fail func(event *consumer.Event, try int) error) *ledger {
	return &ledger{
		effect: map[outbox.ID]int{}, newest: map[string]int64{}, firsts: map[string][]int64{}, fail: fail,
		tries: map[outbox.ID]int{},
	}
}

// handle is a handler with an inbox.
func (l *ledger) handle(_ context.Context, event *consumer.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries[event.ID]++
	if l.tries[event.ID] == 1 {
		l.firsts[event.Key()] = append(l.firsts[event.Key()], event.Seq)
	}
	if l.effect[event.ID] > 0 {
		l.copies++
		return consumer.ErrDuplicate
	}
	if err := l.fail(event, l.tries[event.ID]); err != nil {
		return err
	}
	l.effect[event.ID]++
	l.newest[event.Key()] = max(l.newest[event.Key()], event.Seq)
	return nil
}

func (l *ledger) effects() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.effect)
}

// disorder counts first deliveries that came behind a later one of their aggregate.
func (l *ledger) disorder() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, numbers := range l.firsts {
		for i := 1; i < len(numbers); i++ {
			if numbers[i] < numbers[i-1] {
				n++
			}
		}
	}
	return n
}

// start runs a loop until stop, which waits for its end.
func (s *site) start(ctx context.Context, over *wire, handle consumer.Handler,
	config googlepubsub.ConsumeConfig,
) (stop func() error, err error) {
	client, err := s.client(ctx, over)
	if err != nil {
		return nil, err
	}
	handler, err := consumer.New(consumer.Config{Name: "proof", Logger: slog.New(slog.DiscardHandler)},
		consumer.OnType(eventType, handle))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- googlepubsub.Consume(ctx, client, handler, config) }()
	return func() error {
		cancel()
		return errors.Join(<-ended, client.Close())
	}, nil
}

// consume handles events of one aggregate of which one fails twice, and poison.
func (s *site) consume(ctx context.Context, report *Report) (err error) {
	const events, failing = 30, 5
	topic, letters := s.prefix+"-orders", s.prefix+"-dead"
	if err := errors.Join(s.createTopic(ctx, letters), s.subscribe(ctx, letters, letters, ""), s.createTopic(ctx, topic),
		s.subscribe(ctx, topic, topic, letters)); err != nil {
		return err
	}
	publisher, closeIt, err := s.publisher(ctx, googlepubsub.PublisherConfig{Timeout: requestTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	book := newLedger(func(event *consumer.Event, try int) error {
		switch {
		case event.Aggregate.ID == "o-2":
			return consumer.Poison(errByPlan)
		case event.Seq == failing && try <= 2:
			return errByPlan
		default:
			return nil
		}
	})
	for number := range events {
		if err := send(ctx, publisher, relaytest.NewMessage(topic, 1, int64(number+1))); err != nil {
			return err
		}
	}
	if err := send(ctx, publisher, relaytest.NewMessage(topic, 2, 1)); err != nil {
		return err
	}
	stop, err := s.start(ctx, s.wire, book.handle, googlepubsub.ConsumeConfig{
		Subscription: topic, DeadLetters: letters, RetryPolicy: true,
	})
	if err != nil {
		return err
	}
	dead := &taker{site: s, subscription: letters, seen: map[string]bool{}}
	waited := eventually.Within(ctx, eventually.Patience, "all is handled, and the poison is a dead letter",
		func() (bool, error) {
			arrived, err := dead.take(ctx)
			return book.effects() == events && len(arrived) > 0, err
		})
	if waited != nil {
		s.sayf("%v", waited)
	}
	report.Consumed, report.Redelivered, report.DeadLetters = book.effects(), book.copies, len(dead.all)
	report.ConsumeOrder = book.disorder()
	report.ConsumeMissing = events - book.effects()
	return stop()
}

// send publishes a message until Pub/Sub has it.
func send(ctx context.Context, publisher *googlepubsub.Publisher, message *publish.Message) error {
	for {
		try, cancel := context.WithTimeout(ctx, publishDeadline)
		err := publisher.Publish(try, message)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("publish event %d of %s: %w", message.Seq, message.Key, errors.Join(ctx.Err(), err))
		case <-time.After(time.Second): // as a relay would, later
		}
	}
}
