package relaytest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/posthaste-dev/posthaste/relay"
)

// perKey makes the messages of several aggregates.
func perKey(topic string, keys, each int) [][]*relay.Message {
	all := make([][]*relay.Message, keys)
	for key := range all {
		for number := range each {
			all[key] = append(all[key], NewMessage(topic, key, int64(key*each+number)))
		}
	}
	return all
}

// order: many aggregates at once, each one message at a time, as the relay does it.
func order(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	keys := perKey(s.topic, 24, 25)
	var group sync.WaitGroup
	for _, messages := range keys {
		group.Go(func() {
			if err := s.mustPublish(ctx, publisher, messages...); err != nil {
				s.problemf("%v", err)
			}
		})
	}
	group.Wait()
	arrived, err := s.checkArrived(ctx, slices.Concat(keys...), false)
	if err != nil {
		return err
	}
	s.checkOrder(arrived, keys)
	s.use(Order)
	return nil
}

// concurrent: everything at once, for the race detector, and to have more in flight than a client's
// buffers may hold: a publisher waits for room, it does not fail.
func concurrent(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	messages := slices.Concat(perKey(s.topic, 600, 1)...)
	var group sync.WaitGroup
	for _, message := range messages {
		group.Go(func() {
			if err := s.mustPublish(ctx, publisher, message); err != nil {
				s.problemf("%v", err)
			}
		})
	}
	group.Wait()
	_, err = s.checkArrived(ctx, messages, false)
	return err
}

// oneBad publishes good messages and a bad one side by side. The bad one fails by itself.
func oneBad(ctx context.Context, s *scene, bad *relay.Message, publisher relay.Publisher) error {
	messages := slices.Concat(perKey(s.topic, 30, 1)...)
	var (
		group    sync.WaitGroup
		badError error
	)
	failures := make([]error, len(messages))
	for i, message := range messages {
		group.Go(func() { failures[i] = s.mustPublish(ctx, publisher, message) })
		if i == len(messages)/2 {
			group.Go(func() { badError = s.publish(ctx, publisher, bad, s.harness.Deadline) })
		}
	}
	group.Wait()
	// One problem for all of them: problems are bounded, and what comes after must be told as well.
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	if len(failures) > 0 {
		s.problemf("beside a bad message %d of %d failed, for instance: %v", len(failures), len(messages), failures[0])
	}
	for key := range 3 {
		after := NewMessage(s.topic, key, int64(2000+key))
		if err := s.mustPublish(ctx, publisher, after); err != nil {
			return fmt.Errorf("after a bad message: %w", err)
		}
		messages = append(messages, after)
	}
	if class := classOf(badError); class != terminal && class != rejected {
		s.problemf("the bad message: want a TerminalError or a RejectedError, got class %s: %v", class, badError)
	}
	_, err := s.checkArrived(ctx, messages, false)
	return err
}

func oneTooLarge(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	_, bad, err := s.atLimit(1000)
	if err != nil {
		return err
	}
	return oneBad(ctx, s, bad, publisher)
}

func oneRefused(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	bad := NewMessage(s.topic, 1000, 1000)
	end, err := s.begin(ctx, s.refuse(bad))
	if err != nil {
		return err
	}
	defer end()
	s.use(RefuseMessage) // oneBad wants it to fail
	return oneBad(ctx, s, bad, publisher)
}

// refuse is the fault that the broker refuses one message.
func (s *scene) refuse(message *relay.Message) Fault {
	return func(ctx context.Context, topic string) (func(context.Context) error, error) {
		return s.harness.RefuseMessage(ctx, topic, message.ID)
	}
}
