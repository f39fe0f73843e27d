package googlepubsub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"github.com/googleapis/gax-go/v2"

	"github.com/posthaste-dev/posthaste/publish"
)

var _ publish.Pipeliner = (*Publisher)(nil)

// ErrClosed answers what is handed over after Close. It is a [publish.ErrNotSent].
var ErrClosed = fmt.Errorf("googlepubsub: the publisher is closed: %w", publish.ErrNotSent)

// errClosing is why something is given up that Close has no more time for.
var errClosing = errors.New("the publisher is closing")

// Publisher sends events to the topics of one client's project, or to topics that are named in full:
// "projects/p/topics/t".
type Publisher struct {
	client *pubsub.Client
	config PublisherConfig

	mu     sync.RWMutex
	topics map[string]*topic
	closed bool
	// unanswered counts hand-overs, and running the goroutines that wait for the library.
	unanswered, running sync.WaitGroup
}

// NewPublisher makes a publisher. The client stays the caller's; close it after the publisher.
func NewPublisher(client *pubsub.Client, config PublisherConfig) (*Publisher, error) {
	if client == nil {
		return nil, errors.New("googlepubsub: no client: make one with pubsub.NewClient")
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Publisher{client: withoutRetries(client), config: config, topics: map[string]*topic{}}, nil
}

// withoutRetries copies a client so that publishing does not retry, and leaves the original as it is.
//
// The library would retry seven codes, UNAVAILABLE and RESOURCE_EXHAUSTED among them, until its timeout,
// and then report the timeout and not the code. A missing broker or a spent quota would look like a message
// that nobody knows about, and the relay, whose business retries are, would hear of it seconds late.
func withoutRetries(client *pubsub.Client) *pubsub.Client {
	same := *client
	admin := *client.TopicAdminClient
	options := *admin.CallOptions
	options.Publish = append(slices.Clip(options.Publish), gax.WithRetry(never))
	admin.CallOptions = &options
	same.TopicAdminClient = &admin
	return &same
}

type noRetry struct{}

func (noRetry) Retry(error) (time.Duration, bool) { return 0, false }

func never() gax.Retryer { return noRetry{} }

// Publish sends one message and returns nil only after Pub/Sub acknowledged it. What is left of an earlier
// message of the same key is waited for first.
func (p *Publisher) Publish(ctx context.Context, message *publish.Message) error {
	answer := make(chan error, 1)
	done := func(err error) { answer <- err }
	p.handOver(ctx, &handOver{message: message, knows: true, done: done, handed: make(chan struct{})})
	return <-answer
}

// Enqueue hands over a message behind those of the same key. It blocks while the topic's buffer is full.
func (p *Publisher) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	p.handOver(ctx, &handOver{message: message, done: done, handed: make(chan struct{})})
}

// Depth is how many messages of one key may be in flight.
func (p *Publisher) Depth() int {
	if p.config.Unordered {
		return 1
	}
	return p.config.Depth
}

// closeGrace is what Close takes at most beyond the time of a request.
const closeGrace = time.Second

// Close sends what has been handed over, waits until all of it is answered, and ends the goroutines. It takes at most
// [PublisherConfig.Timeout] and a second: what is not answered by then is given up, and what is still under way ends
// with the client.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	topics := slices.Collect(maps.Values(p.topics))
	p.mu.Unlock()
	stopped, answered := make(chan struct{}), make(chan struct{})
	go func() {
		// First the answers: a library that is stopped pauses no key any more, and would send what was given up meanwhile.
		p.unanswered.Wait()
		close(answered)
		var stopping sync.WaitGroup
		for _, t := range topics {
			stopping.Go(t.library.Stop)
		}
		stopping.Wait()
		p.running.Wait()
		close(stopped)
	}()
	if !closedWithin(stopped, p.config.Timeout+closeGrace/2) {
		for _, t := range topics {
			t.abandon()
		}
		closedWithin(answered, closeGrace/2)
	}
	return nil
}

// closedWithin waits for a channel to be closed, and tells whether it was.
func closedWithin(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (p *Publisher) handOver(ctx context.Context, h *handOver) {
	t, err := p.enter(h.message.Topic)
	if err != nil {
		go h.done(err) // never from inside Enqueue: the caller may hold what done needs
		return
	}
	defer p.unanswered.Done()
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.notSent = t.check(h.message)
	t.take(h) //nolint:contextcheck // it carries the context
}

// enter finds or makes the topic and, unless it fails, adds to unanswered.
func (p *Publisher) enter(name string) (*topic, error) {
	p.mu.RLock()
	t, closed := p.topics[name], p.closed
	if t != nil && !closed {
		p.unanswered.Add(1)
	}
	p.mu.RUnlock()
	if t != nil && !closed {
		return t, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.topics[name] == nil {
		if err := checkTopicName(name); err != nil {
			return nil, &publish.TopicError{Err: fmt.Errorf("googlepubsub: %w", err)}
		}
		p.topics[name] = p.newTopic(name)
	}
	p.unanswered.Add(1)
	return p.topics[name], nil
}
