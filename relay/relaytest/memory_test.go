package relaytest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

const maxBytes = 4096

// memory is a broker in this process, with every fault that the suite knows, and a bug if one is named.
type memory struct {
	bug bug

	mu                     sync.Mutex
	topics                 map[string][]relaytest.Arrived
	removed                map[string]bool
	stored                 map[outbox.ID]bool
	down, slow, loses, bar bool
	hangs                  bool
	hanging                int // requests under way at a broker that hangs
	rejects                map[outbox.ID]bool
	late                   []*publish.Message // what a client with a bug keeps for later
	wasDown, sick          bool
	background             sync.WaitGroup
	over                   chan struct{} // closed when the test ends: what leaked ends then
}

func newMemory(b bug) *memory {
	return &memory{
		bug: b, topics: map[string][]relaytest.Arrived{}, stored: map[outbox.ID]bool{}, rejects: map[outbox.ID]bool{},
		over: make(chan struct{}), removed: map[string]bool{},
	}
}

// harness hands the broker to the suite. Open is left to the caller.
func (m *memory) harness() relaytest.Harness {
	flag := func(which *bool) relaytest.Fault {
		return func(context.Context, string) (func(context.Context) error, error) {
			m.set(which, true)
			return func(context.Context) error { m.set(which, false); return nil }, nil
		}
	}
	return relaytest.Harness{
		MakeTopic: func(_ context.Context, topic string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.topics[topic] = []relaytest.Arrived{}
			return nil
		},
		RemoveTopic: func(_ context.Context, topic string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.topics, topic)
			m.removed[topic] = true
			return nil
		},
		Arrived: func(_ context.Context, topic string) ([]relaytest.Arrived, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return slices.Clone(m.topics[topic]), nil
		},
		MaxBytes: maxBytes,
		Stop:     flag(&m.down), Slow: flag(&m.slow), Hang: flag(&m.hangs), LoseAck: flag(&m.loses), DenyAuth: flag(&m.bar),
		RejectMessage: func(_ context.Context, _ string, id outbox.ID) (func(context.Context) error, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.rejects[id] = true
			return func(context.Context) error {
				m.mu.Lock()
				defer m.mu.Unlock()
				delete(m.rejects, id)
				return nil
			}, nil
		},
		Cannot:   map[relaytest.Ability]string{},
		Recovery: 5 * time.Second,
	}
}

func (m *memory) set(flag *bool, to bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*flag = to
	if (flag == &m.down || flag == &m.hangs) && !to {
		m.wasDown = m.wasDown || flag == &m.down
		m.hanging = 0
		for _, message := range m.late {
			m.store(message)
		}
		m.late = nil
	}
}

// store keeps a message, once per id. The caller holds the lock.
func (m *memory) store(message *publish.Message) {
	kept := m.topics[message.Topic]
	if m.bug != sendsTwice && m.stored[message.ID] {
		return
	}
	m.stored[message.ID] = true
	arrived := relaytest.Arrived{
		Body: bytes.Clone(message.Body), Attributes: maps.Clone(message.Attributes), Key: message.Key,
	}
	m.bug.spoil(&arrived)
	kept = append(kept, arrived)
	if m.bug == breaksOrder && len(kept)%7 == 0 {
		passPrevious(kept)
	}
	m.topics[message.Topic] = kept
	if m.bug == sendsTwice {
		m.topics[message.Topic] = append(kept, arrived)
	}
}

// passPrevious lets the last message pass the one of its key before it.
func passPrevious(kept []relaytest.Arrived) {
	last := len(kept) - 1
	for i, a := range slices.Backward(kept[:last]) {
		if a.Key == kept[last].Key {
			kept[i], kept[last] = kept[last], kept[i]
			return
		}
	}
}

var errDown = errors.New("connection refused")

// publish is the broker with an honest client in front, and the bugs that a client may have.
func (m *memory) publish(ctx context.Context, message *publish.Message) error {
	<-time.After(time.Millisecond) // the way to a broker, so that others queue up behind
	if ctx.Err() != nil && m.bug != ignoresContext {
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down && m.bug == downIsNil {
		return nil
	}
	if err := m.reject(message); err != nil {
		return err
	}
	if m.hangs {
		return m.hang(ctx, message)
	}
	if m.slow {
		return m.wait(ctx)
	}
	if m.bug == acksBeforeSending {
		m.background.Go(func() {
			time.Sleep(20 * time.Millisecond) // synctest
			m.mu.Lock()
			defer m.mu.Unlock()
			m.store(message)
		})
		return nil
	}
	m.store(message)
	if m.bug == changesMessage {
		message.Attributes["attempt"] = "1"
	}
	if m.loses {
		return m.wait(ctx)
	}
	return nil
}

// wait is an acknowledgement that does not come. The caller holds the lock, which is given up meanwhile.
func (m *memory) wait(ctx context.Context) error {
	m.mu.Unlock()
	defer m.mu.Lock()
	switch m.bug {
	case ignoresContext:
		time.Sleep(4 * time.Second) // synctest
	case lostIsNil:
		return nil
	case lostIsNotSent:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", publish.ErrNotSent, ctx.Err())
	case lostIsRejected:
		<-ctx.Done()
		return &publish.RejectedError{Err: ctx.Err()}
	default:
		<-ctx.Done()
	}
	return ctx.Err()
}

// hang is a broker that takes a message and forgets it. A client with a bug sends only so many at a time, and the
// others when it hears again, whoever still wants them sent.
func (m *memory) hang(ctx context.Context, message *publish.Message) error {
	const workers = 50
	if m.hanging++; m.bug == queues && m.hanging > workers {
		m.late = append(m.late, message)
	}
	return m.wait(ctx)
}

// reject says what the broker has against a message. The caller holds the lock.
func (m *memory) reject(message *publish.Message) error {
	_, exists := m.topics[message.Topic]
	switch {
	case m.down:
		return m.whileDown(message)
	case m.wasDown && m.bug == neverRecovers:
		return &publish.TopicError{Err: errDown}
	case m.bar:
		return m.bug.or(authIsRejected, &publish.RejectedError{Err: errors.New("unauthenticated")},
			&publish.TopicError{Err: errors.New("unauthenticated")})
	case m.removed[message.Topic] && m.bug == topicStaysGone:
		return &publish.TopicError{Err: errors.New("no topic")}
	case !exists && m.bug == topicIsMade:
		return nil
	case !exists:
		return m.bug.or(topicIsTerminal, &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("no topic")},
			&publish.TopicError{Err: errors.New("no topic")})
	case len(message.Body) > maxBytes-1 && m.bug == limitIsOneLess, len(message.Body) > maxBytes && m.bug != cutsLarge:
		m.sick = m.bug == badStopsAll
		tooLarge := &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: errors.New("too large")}
		return m.bug.or(largeIsRejected, &publish.RejectedError{Err: errors.New("too large")}, tooLarge)
	case m.rejects[message.ID]:
		m.sick = m.bug == badStopsAll
		return &publish.RejectedError{Err: errors.New("not this one")}
	case m.sick:
		return &publish.TopicError{Err: errors.New("paused")}
	}
	return nil
}

func (m *memory) whileDown(message *publish.Message) error {
	switch m.bug {
	case buffers:
		m.late = append(m.late, message)
	case downIsTerminal:
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errDown}
	default:
	}
	return &publish.TopicError{Err: errDown}
}
