package relaytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/relay"
)

// atLimit makes a message of the largest size that the broker must take, and one that is a byte larger.
func (s *scene) atLimit(key int) (fits, tooLarge *relay.Message, err error) {
	smallest := NewMessage(s.topic, key, 1)
	if size := s.harness.Size(smallest); size >= s.harness.MaxBytes {
		return nil, nil, fmt.Errorf("harness: MaxBytes is %d, and the smallest message of the suite has %d", s.harness.MaxBytes, size)
	}
	fits, tooLarge = atLimit(s.harness, func() *relay.Message { return NewMessage(s.topic, key, 1) })
	return fits, tooLarge, nil
}

// sizeLimit: at the limit a message is taken, and above it the event is dead at once, for a reason that
// says so.
func sizeLimit(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	fits, tooLarge, err := s.atLimit(1)
	if err != nil {
		return err
	}
	if err := s.mustPublish(ctx, publisher, fits); err != nil {
		return fmt.Errorf("a message of %d bytes, which is the limit: %w", s.harness.Size(fits), err)
	}
	for _, size := range []int{len(tooLarge.Body), 2 * len(tooLarge.Body)} {
		message := padded(tooLarge, size)
		err := s.publish(ctx, publisher, message, s.harness.Deadline)
		var refusal *relay.TerminalError
		switch {
		case !errors.As(err, &refusal):
			s.problemf("a message of %d bytes, above the limit of %d: want a TerminalError, got class %s: %v",
				s.harness.Size(message), s.harness.MaxBytes, classOf(err), err)
		case refusal.Reason != relay.ReasonTooLarge:
			s.problemf("a message above the limit: the reason is %q, want %q", refusal.Reason, relay.ReasonTooLarge)
		default:
			s.use(Limit)
		}
	}
	after := NewMessage(s.topic, 1, 2)
	if err := s.mustPublish(ctx, publisher, after); err != nil {
		return fmt.Errorf("after a message that was too large: %w", err)
	}
	_, err = s.checkArrived(ctx, []*relay.Message{fits, after}, false)
	return err
}

// mustBeRoute publishes and wants a RouteError, within the recovery time: some brokers need a while to
// tell. Until then a publish may time out, which blames nobody either.
func (s *scene) mustBeRoute(ctx context.Context, publisher relay.Publisher, what string) error {
	ctx, cancel := context.WithTimeout(ctx, s.harness.Recovery)
	defer cancel()
	for try := 0; ; try++ {
		message := NewMessage(s.topic, 1, int64(1000+try))
		err := s.publish(ctx, publisher, message, min(s.harness.Deadline, 5*time.Second))
		switch classOf(err) {
		case routeFault:
			return nil
		case unknown:
		case acknowledged:
			return fmt.Errorf("%s, yet Publish returned nil", what)
		case rejected, terminal:
			return fmt.Errorf("%s: want a RouteError, got class %s, which blames the event: %w", what, classOf(err), err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("%s: want a RouteError within %v, got only class %s: %w", what, s.harness.Recovery, classOf(err), err)
		}
	}
}

// missingTopic: a topic that was never made, and one that was removed, are faults of the route; other
// topics go on, and the publisher works by itself once the topic is there.
func missingTopic(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	there := s.topic
	s.topic += "-not"
	if err := s.mustBeRoute(ctx, publisher, "the topic does not exist"); err != nil {
		return err
	}
	s.use(MissingTopic)
	if err := s.mustPublish(ctx, publisher, NewMessage(there, 1, 1)); err != nil {
		return fmt.Errorf("a topic that exists, beside one that does not: %w", err)
	}
	if err := s.harness.MakeTopic(ctx, s.topic); err != nil {
		return fmt.Errorf("harness: making topic %s: %w", s.topic, err)
	}
	made := s.topic
	removed := false
	defer func() {
		s.topic = there
		if !removed {
			_ = s.harness.RemoveTopic(context.WithoutCancel(ctx), made)
		}
	}()
	late := NewMessage(s.topic, 1, 2)
	if _, err := s.publishThrough(ctx, publisher, late); err != nil {
		return fmt.Errorf("after the topic was made: %w", err)
	}
	arrived, err := s.arrived(ctx)
	if err != nil {
		return err
	}
	if copies(arrived)[late.ID.String()] == 0 {
		s.problemf("the topic was made late, and what was acknowledged after that is not on it")
	}
	if err := s.harness.RemoveTopic(ctx, s.topic); err != nil {
		return fmt.Errorf("harness: removing topic %s: %w", s.topic, err)
	}
	removed = true
	return s.mustBeRoute(ctx, publisher, "the topic was removed")
}

// refusedAuth: refused credentials are a fault of the route, and the publisher works by itself once they
// are accepted again.
func refusedAuth(ctx context.Context, s *scene) error {
	publisher, err := s.open(ctx)
	if err != nil {
		return err
	}
	before := NewMessage(s.topic, 1, 1)
	if err := s.mustPublish(ctx, publisher, before); err != nil {
		return err
	}
	end, err := s.begin(ctx, s.harness.RefuseAuth)
	if err != nil {
		return err
	}
	if err := s.mustBeRoute(ctx, publisher, "the credentials are refused"); err != nil {
		return err
	}
	s.use(RefuseAuth)
	end()
	after := NewMessage(s.topic, 1, 2)
	if _, err := s.publishThrough(ctx, publisher, after); err != nil {
		return fmt.Errorf("after the credentials were accepted again: %w", err)
	}
	_, err = s.checkArrived(ctx, []*relay.Message{before, after}, true)
	return err
}
