package relaytest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/posthaste-dev/posthaste/publish"
)

// perKey makes the messages of several aggregates.
func perKey(topic string, keys, each int) [][]*publish.Message {
	all := make([][]*publish.Message, keys)
	for key := range all {
		for number := range each {
			all[key] = append(all[key], NewMessage(topic, key, int64(key*each+number)))
		}
	}
	return all
}

// order: many aggregates at once, each one message at a time, as the relay does it.
func order(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	keys := perKey(e.topic, 24, 25)
	var group sync.WaitGroup
	for _, messages := range keys {
		group.Go(func() {
			if err := e.mustPublish(ctx, publisher, messages...); err != nil {
				e.problemf("%v", err)
			}
		})
	}
	group.Wait()
	arrived, err := e.checkArrived(ctx, slices.Concat(keys...), false)
	if err != nil {
		return err
	}
	e.checkOrder(arrived, keys)
	e.use(Order)
	return nil
}

// concurrent: everything at once, for the race detector, and to have more in flight than a client's
// buffers may hold: a publisher waits for room, it does not fail.
func concurrent(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	messages := slices.Concat(perKey(e.topic, 600, 1)...)
	var group sync.WaitGroup
	for _, message := range messages {
		group.Go(func() {
			if err := e.mustPublish(ctx, publisher, message); err != nil {
				e.problemf("%v", err)
			}
		})
	}
	group.Wait()
	_, err = e.checkArrived(ctx, messages, false)
	return err
}

// oneBad publishes good messages and a bad one side by side. The bad one fails by itself.
func oneBad(ctx context.Context, e *env, bad *publish.Message, publisher publish.Publisher) error {
	messages := slices.Concat(perKey(e.topic, 30, 1)...)
	var (
		group    sync.WaitGroup
		badError error
	)
	failures := make([]error, len(messages))
	for i, message := range messages {
		group.Go(func() { failures[i] = e.mustPublish(ctx, publisher, message) })
		if i == len(messages)/2 {
			group.Go(func() { badError = e.publish(ctx, publisher, bad, e.harness.Deadline) })
		}
	}
	group.Wait()
	// One problem for all of them: problems are bounded, and what comes after must be told as well.
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	if len(failures) > 0 {
		e.problemf("beside a bad message %d of %d failed, for instance: %v", len(failures), len(messages), failures[0])
	}
	for key := range 3 {
		after := NewMessage(e.topic, key, int64(2000+key))
		if err := e.mustPublish(ctx, publisher, after); err != nil {
			return fmt.Errorf("after a bad message: %w", err)
		}
		messages = append(messages, after)
	}
	if class := publish.ClassOf(badError); !charges(class) {
		e.problemf("the bad message: want a TerminalError or a RejectedError, got class %s: %v", class, badError)
	}
	_, err := e.checkArrived(ctx, messages, false)
	return err
}

func oneTooLarge(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	_, bad, err := e.atLimit(1000)
	if err != nil {
		return err
	}
	return oneBad(ctx, e, bad, publisher)
}

func oneRejected(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	bad := NewMessage(e.topic, 1000, 1000)
	end, err := e.begin(ctx, e.reject(bad))
	if err != nil {
		return err
	}
	defer end()
	e.use(RejectMessage) // oneBad wants it to fail
	return oneBad(ctx, e, bad, publisher)
}

// reject is the fault that the broker rejects one message.
func (e *env) reject(message *publish.Message) Fault {
	return func(ctx context.Context, topic string) (func(context.Context) error, error) {
		return e.harness.RejectMessage(ctx, topic, message.ID)
	}
}
