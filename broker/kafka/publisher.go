package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/publish"
)

var _ publish.Pipeliner = (*Publisher)(nil)

// ErrClosed answers what is handed over after Close. It is a [publish.ErrNotSent].
var ErrClosed = fmt.Errorf("kafka: the publisher is closed: %w", publish.ErrNotSent)

// errClosing is why something is given up that Close has no more time for.
var errClosing = errors.New("the publisher is closing")

// Publisher sends events to the topics of one cluster.
type Publisher struct {
	client     *kgo.Client
	config     PublisherConfig
	compressor kgo.Compressor

	// work ends when nobody waits for anything any more.
	work context.Context //nolint:containedctx // the publisher's own, from NewPublisher to Close
	stop context.CancelCauseFunc

	producer producer

	mu     sync.RWMutex
	topics map[string]*topic
	closed bool
	// unanswered counts hand-overs, and running the goroutines.
	unanswered, running sync.WaitGroup
}

// NewPublisher makes a publisher, with a client of its own. It connects when the first message comes: an error is
// about the cluster's description or the configuration.
func NewPublisher(cluster Cluster, config PublisherConfig) (*Publisher, error) {
	config, err := config.withDefaults()
	if err = errors.Join(cluster.validate(), err); err != nil {
		return nil, err
	}
	compressor, err := kgo.DefaultCompressor(codecs[config.Compression])
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	client, err := cluster.client(
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProduceRequestTimeout(config.Timeout),
		// Business of the relay's: a question that failed is asked again when somebody waits for the answer.
		kgo.RequestRetries(2), kgo.RetryTimeout(questionTimeout))
	if err != nil {
		return nil, err
	}
	p := &Publisher{client: client, config: config, compressor: compressor, topics: map[string]*topic{}}
	p.work, p.stop = context.WithCancelCause(context.Background())
	return p, nil
}

// Publish sends one message and returns nil only after all replicas that are in sync have it.
func (p *Publisher) Publish(ctx context.Context, message *publish.Message) error {
	answer := make(chan error, 1)
	p.handOver(&handOver{ctx: ctx, message: message, knows: true, done: func(err error) { answer <- err }})
	return <-answer
}

// Enqueue hands over a message behind those of the same key.
func (p *Publisher) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	p.handOver(&handOver{ctx: ctx, message: message, done: done})
}

// Ping asks whether a broker answers, with the connection and the login that publishing has.
func (p *Publisher) Ping(ctx context.Context) error {
	if err := p.client.Ping(ctx); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// Depth is how many messages of one key may be in flight.
func (p *Publisher) Depth() int { return p.config.Depth }

func (p *Publisher) handOver(h *handOver) {
	t, err := p.enter(h.message.Topic)
	if err != nil {
		go h.done(err) // never from inside Enqueue: the caller may hold what done needs
		return
	}
	t.take(h)
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
		if err := CheckTopic(p.config.Prefix + name); err != nil {
			return nil, &publish.TopicError{Err: fmt.Errorf("kafka: %w", err)}
		}
		p.topics[name] = p.newTopic(p.config.Prefix + name)
	}
	p.unanswered.Add(1)
	return p.topics[name], nil
}

// closeGrace is what Close takes at most beyond the time of a request.
const closeGrace = time.Second

// Close sends what has been handed over, waits until all of it is answered, and closes the client. It takes at most
// [PublisherConfig.Timeout] and a second: what is not answered by then is given up.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		p.unanswered.Wait()
		close(answered)
	}()
	timer := time.NewTimer(p.config.Timeout + closeGrace)
	defer timer.Stop()
	select {
	case <-answered:
	case <-timer.C:
		p.abandon()
		<-answered
	}
	p.stop(errClosing)
	p.client.Close()
	p.running.Wait()
	return nil
}

// abandon gives up everything that is not answered.
func (p *Publisher) abandon() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, t := range p.topics {
		t.giveUp(&publish.TopicError{Err: fmt.Errorf("kafka: %w", errClosing)})
	}
}

// producer is the number under which the brokers know this publisher, so that what they get twice they take once.
type producer struct {
	mu    sync.Mutex
	id    int64
	known bool
}

// questionTimeout is how long the brokers have for answers that concern no message.
const questionTimeout = 5 * time.Second

// identify returns the publisher's number, which it asks for once.
func (p *Publisher) identify(ctx context.Context) (int64, error) {
	p.producer.mu.Lock()
	defer p.producer.mu.Unlock()
	if p.producer.known {
		return p.producer.id, nil
	}
	ctx, cancel := context.WithTimeout(ctx, questionTimeout)
	defer cancel()
	answer, err := kmsg.NewPtrInitProducerIDRequest().RequestWith(ctx, p.client)
	if err == nil {
		err = errorOf(answer.ErrorCode, nil)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for a producer id: %w", err)
	}
	p.producer.id, p.producer.known = answer.ProducerID, true
	return p.producer.id, nil
}

// forget gives a number up that the brokers do not know any more, or that has been used up.
func (p *Publisher) forget(id int64) {
	p.producer.mu.Lock()
	defer p.producer.mu.Unlock()
	if p.producer.id == id {
		p.producer.known = false
	}
}
