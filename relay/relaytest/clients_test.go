package relaytest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// plain is a publisher of one message at a time: a publish.PublisherFunc, as delivery inside the process has it.
func (m *memory) plain(ctx context.Context) (publish.Publisher, func() error, error) {
	closed := make(chan struct{})
	if m.bug == leaks {
		go func() { <-m.over }()
	}
	send := func(ctx context.Context, message *publish.Message) error {
		select {
		case <-closed:
			switch m.bug {
			case worksClosed:
				return nil
			case hangsClosed:
				<-time.After(4 * time.Second)
			default:
			}
			return &publish.TopicError{Err: errors.New("closed")}
		default:
			return m.publish(ctx, message)
		}
	}
	return publish.PublisherFunc(send), func() error { close(closed); m.background.Wait(); return nil }, nil
}

// pipelined keeps a queue for each key. Once a message failed it fails everything that is handed over
// behind it, until the failed one, or one that failed behind it, is handed over anew.
type pipelined struct {
	publish.Publisher
	memory *memory
	mu     sync.Mutex
	queues map[string]*queue
	group  sync.WaitGroup
}

type queue struct {
	items   []item
	running bool
	failed  map[outbox.ID]bool
}

type item struct {
	ctx     context.Context //nolint:containedctx // the queue is between a call and its answer
	message *publish.Message
	done    func(error)
}

var errBehind = errors.New("behind a failed message")

func (m *memory) pipelined(ctx context.Context) (publish.Publisher, func() error, error) {
	plain, closeIt, err := m.plain(ctx)
	p := &pipelined{Publisher: plain, memory: m, queues: map[string]*queue{}}
	return p, func() error { p.group.Wait(); return closeIt() }, err
}

func (p *pipelined) Depth() int {
	if p.memory.bug == shallow {
		return 1
	}
	return 16
}

func (p *pipelined) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[message.Topic+message.Key]
	if q == nil {
		q = &queue{}
		p.queues[message.Topic+message.Key] = q
	}
	if q.failed != nil && p.memory.bug != goesOn {
		if !q.failed[message.ID] {
			q.failed[message.ID] = true
			p.group.Go(func() { done(p.behind()) })
			return
		}
		q.failed = nil
	}
	q.items = append(q.items, item{ctx, message, done})
	if last := len(q.items) - 1; p.memory.bug == swaps && last > 0 {
		q.items[last], q.items[last-1] = q.items[last-1], q.items[last]
	}
	if !q.running {
		q.running = true
		p.group.Go(func() { p.work(q) })
	}
}

func (p *pipelined) behind() error {
	if p.memory.bug == chargesFollowers {
		return &publish.RejectedError{Err: errBehind}
	}
	return errBehind
}

func (p *pipelined) work(q *queue) {
	for {
		p.mu.Lock()
		if len(q.items) == 0 {
			q.running = false
			p.mu.Unlock()
			return
		}
		next := q.items[0]
		q.items = q.items[1:]
		p.mu.Unlock()
		err := p.Publish(next.ctx, next.message)
		var rest []item
		if err != nil && p.memory.bug != goesOn {
			p.mu.Lock()
			rest, q.items = q.items, nil
			q.failed = map[outbox.ID]bool{next.message.ID: true}
			for _, behind := range rest {
				q.failed[behind.message.ID] = true
			}
			p.mu.Unlock()
		}
		if p.memory.bug == doneTwice {
			next.done(err)
		}
		if p.memory.bug != doneNever {
			next.done(err)
		}
		for _, behind := range rest {
			behind.done(p.behind())
		}
	}
}
