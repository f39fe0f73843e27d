package relaytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// atLimit makes a message of the largest size that the broker must take, and one that is a byte larger.
func (e *env) atLimit(key int) (fits, tooLarge *publish.Message, err error) {
	smallest := NewMessage(e.topic, key, 1)
	if size := e.harness.Size(smallest); size >= e.harness.MaxBytes {
		return nil, nil, fmt.Errorf("harness: MaxBytes is %d, and the smallest message of the suite has %d",
			e.harness.MaxBytes, size)
	}
	fits, tooLarge = atLimit(e.harness, func() *publish.Message { return NewMessage(e.topic, key, 1) })
	return fits, tooLarge, nil
}

// sizeLimit: at the limit a message is taken, and above it the event is dead at once, for a reason that
// says so.
func sizeLimit(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	fits, tooLarge, err := e.atLimit(1)
	if err != nil {
		return err
	}
	if err := e.mustPublish(ctx, publisher, fits); err != nil {
		return fmt.Errorf("a message of %d bytes, which is the limit: %w", e.harness.Size(fits), err)
	}
	for _, size := range []int{len(tooLarge.Body), 2 * len(tooLarge.Body)} {
		message := padded(tooLarge, size)
		err := e.publish(ctx, publisher, message, e.harness.Deadline)
		var failure *publish.TerminalError
		switch {
		case !errors.As(err, &failure):
			e.problemf("a message of %d bytes, above the limit of %d: want a TerminalError, got class %s: %v",
				e.harness.Size(message), e.harness.MaxBytes, publish.ClassOf(err), err)
		case failure.Reason != publish.ReasonTooLarge:
			e.problemf("a message above the limit: the reason is %q, want %q", failure.Reason, publish.ReasonTooLarge)
		default:
			e.use(Limit)
		}
	}
	after := NewMessage(e.topic, 1, 2)
	if err := e.mustPublish(ctx, publisher, after); err != nil {
		return fmt.Errorf("after a message that was too large: %w", err)
	}
	_, err = e.checkArrived(ctx, []*publish.Message{fits, after}, false)
	return err
}

// mustBeTopicFault publishes and wants a TopicError, within the recovery time: some brokers need a while to
// tell. Until then a publish may time out, which charges nobody either.
func (e *env) mustBeTopicFault(ctx context.Context, publisher publish.Publisher, what string) error {
	ctx, cancel := context.WithTimeout(ctx, e.harness.Recovery)
	defer cancel()
	for try := 0; ; try++ {
		message := NewMessage(e.topic, 1, int64(1000+try))
		err := e.publish(ctx, publisher, message, min(e.harness.Deadline, 5*time.Second))
		switch publish.ClassOf(err) {
		case publish.TopicFault:
			return nil
		case publish.Unknown, publish.NotSent:
		case publish.Published:
			return fmt.Errorf("%s, yet Publish returned nil", what)
		case publish.Rejected, publish.Terminal:
			return fmt.Errorf("%s: want a TopicError, got class %s, which charges the event: %w", what,
				publish.ClassOf(err), err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s: want a TopicError within %v, got only class %s: %w", what, e.harness.Recovery,
				publish.ClassOf(err), err)
		}
	}
}

// missingTopic: a topic that was never made, and one that was removed, are faults of the topic; other
// topics go on, and the publisher works by itself once the topic is there.
func missingTopic(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	there := e.topic
	e.topic += "-not"
	if err := e.mustBeTopicFault(ctx, publisher, "the topic does not exist"); err != nil {
		return err
	}
	e.use(MissingTopic)
	if err := e.mustPublish(ctx, publisher, NewMessage(there, 1, 1)); err != nil {
		return fmt.Errorf("a topic that exists, beside one that does not: %w", err)
	}
	if err := e.harness.MakeTopic(ctx, e.topic); err != nil {
		return fmt.Errorf("harness: making topic %s: %w", e.topic, err)
	}
	made := e.topic
	removed := false
	defer func() {
		e.topic = there
		if !removed {
			_ = e.harness.RemoveTopic(context.WithoutCancel(ctx), made)
		}
	}()
	late := NewMessage(e.topic, 1, 2)
	if _, err := e.publishThrough(ctx, publisher, late); err != nil {
		return fmt.Errorf("after the topic was made: %w", err)
	}
	arrived, err := e.arrived(ctx)
	if err != nil {
		return err
	}
	if copies(arrived)[late.ID.String()] == 0 {
		e.problemf("the topic was made late, and what was acknowledged after that is not on it")
	}
	if err := e.harness.RemoveTopic(ctx, e.topic); err != nil {
		return fmt.Errorf("harness: removing topic %s: %w", e.topic, err)
	}
	removed = true
	if err := e.mustBeTopicFault(ctx, publisher, "the topic was removed"); err != nil {
		return err
	}
	return e.topicMadeAgain(ctx, publisher, made)
}

// topicMadeAgain: another topic of the same name. A broker may know it by another number, and what the publisher has
// learnt of the first one is not true of it.
func (e *env) topicMadeAgain(ctx context.Context, publisher publish.Publisher, topic string) error {
	if err := e.harness.MakeTopic(ctx, topic); err != nil {
		return fmt.Errorf("harness: making topic %s again: %w", topic, err)
	}
	defer func() { _ = e.harness.RemoveTopic(context.WithoutCancel(ctx), topic) }()
	again := NewMessage(topic, 1, 3)
	if _, err := e.publishThrough(ctx, publisher, again); err != nil {
		return fmt.Errorf("after the topic was made again: %w", err)
	}
	arrived, err := e.arrived(ctx)
	if err != nil {
		return err
	}
	if copies(arrived)[again.ID.String()] == 0 {
		e.problemf("the topic was removed and made again, and what was acknowledged after that is not on it")
	}
	return nil
}

// deniedAuth: denied credentials are a fault of the topic, and the publisher works by itself once they
// are accepted again.
func deniedAuth(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	before := NewMessage(e.topic, 1, 1)
	if err := e.mustPublish(ctx, publisher, before); err != nil {
		return err
	}
	end, err := e.begin(ctx, e.harness.DenyAuth)
	if err != nil {
		return err
	}
	if err := e.mustBeTopicFault(ctx, publisher, "the credentials are denied"); err != nil {
		return err
	}
	e.use(DenyAuth)
	end()
	after := NewMessage(e.topic, 1, 2)
	if _, err := e.publishThrough(ctx, publisher, after); err != nil {
		return fmt.Errorf("after the credentials were accepted again: %w", err)
	}
	_, err = e.checkArrived(ctx, []*publish.Message{before, after}, true)
	return err
}
