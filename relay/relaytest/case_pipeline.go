package relaytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// pipelineDeclared: the publisher says of itself what the harness says of it.
func pipelineDeclared(ctx context.Context, e *env) error {
	publisher, err := e.open(ctx)
	if err != nil {
		return err
	}
	pipeliner, is := publisher.(publish.Pipeliner)
	_, cannot := e.harness.Cannot[Pipeline]
	switch {
	case is && cannot:
		return errors.New("the publisher is a publish.Pipeliner, and Cannot says that it is not: the relay would believe " +
			"the publisher")
	case !is && !cannot:
		return errors.New("the publisher is no publish.Pipeliner; say so in Cannot")
	case !is:
		return nil
	case pipeliner.Depth() < 2:
		return fmt.Errorf("pipeline: Depth is %d: with fewer than 2 in flight nothing is pipelined", pipeliner.Depth())
	}
	for _, ability := range []Ability{RejectMessage, Stop} {
		if _, cannot := e.harness.Cannot[ability]; !cannot {
			return nil
		}
	}
	return errors.New("harness: a publish.Pipeliner promises what happens behind a failure: the suite needs " +
		"RejectMessage or Stop to see it")
}

// pipeline is a run of messages through Enqueue, some aggregates side by side.
type pipeline struct {
	s         *env
	pipeliner publish.Pipeliner
	keys      [][]*publish.Message
	// bad is the message that the broker rejects, if any; heal makes the broker take it. Without heal it
	// is left out, as the relay does with a dead event.
	bad  *publish.Message
	heal func()
	// behind counts messages that were in flight behind a failed one.
	behind atomic.Int64
	acks   atomic.Int64

	mu           sync.Mutex
	acknowledged []*publish.Message
}

func (e *env) pipeline(ctx context.Context, keys, each int) (*pipeline, error) {
	publisher, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	pipeliner, ok := publisher.(publish.Pipeliner)
	if !ok {
		return nil, errors.New("the publisher is no publish.Pipeliner")
	}
	return &pipeline{s: e, pipeliner: pipeliner, keys: perKey(e.topic, keys, each)}, nil
}

// run sends all messages, and holds what arrived against them.
func (p *pipeline) run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, messages := range p.keys {
		group.Go(func() {
			if err := p.send(ctx, messages); err != nil {
				p.s.problemf("%v", err)
			}
		})
	}
	group.Wait()
	return p.check(ctx)
}

func (p *pipeline) check(ctx context.Context) error {
	arrived, err := p.s.checkArrived(ctx, p.acknowledged, true)
	if err != nil {
		return err
	}
	p.s.checkFirstOrder(arrived, p.keys)
	return nil
}

// send hands over the messages of one key, a window at a time, and again from the first one that failed.
func (p *pipeline) send(ctx context.Context, pending []*publish.Message) error {
	progress := time.Now()
	for len(pending) > 0 {
		window := pending[:min(len(pending), p.pipeliner.Depth(), 50)]
		results, err := p.s.handOver(ctx, p.pipeliner, window)
		if err != nil {
			return err
		}
		failed := slices.IndexFunc(results, func(err error) bool { return err != nil })
		if failed < 0 {
			progress = time.Now()
			p.acknowledge(window)
			pending = pending[len(window):]
			continue
		}
		if failed > 0 {
			progress = time.Now()
		}
		p.acknowledge(window[:failed])
		p.checkBehind(window, results, failed)
		pending = pending[failed:]
		switch class := publish.ClassOf(results[failed]); {
		case class == publish.TopicFault, class == publish.Unknown, class == publish.NotSent:
		case pending[0] != p.bad:
			return fmt.Errorf("event %d is charged for what is not its fault: %s error: %w", pending[0].Seq, class,
				results[failed])
		case p.heal != nil:
			p.heal()
		default:
			pending = pending[1:]
		}
		if !pause(ctx, 20*time.Millisecond) || time.Since(progress) > p.s.harness.Recovery {
			return fmt.Errorf("event %d was not acknowledged within %v of recovery: %w", window[failed].Seq,
				p.s.harness.Recovery, results[failed])
		}
	}
	return nil
}

func (p *pipeline) acknowledge(messages []*publish.Message) {
	p.acks.Add(int64(len(messages)))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acknowledged = append(p.acknowledged, messages...)
}

// checkBehind: everything behind a failure fails too, and none of it is charged.
func (p *pipeline) checkBehind(window []*publish.Message, results []error, failed int) {
	for i := failed + 1; i < len(window); i++ {
		switch class := publish.ClassOf(results[i]); class {
		case publish.TopicFault, publish.Unknown, publish.NotSent:
			p.behind.Add(1)
		case publish.Published:
			p.s.problemf("event %d was acknowledged, and event %d, handed over before it, had failed: %v", window[i].Seq,
				window[failed].Seq, results[failed])
		case publish.Rejected, publish.Terminal:
			if window[i] != p.bad {
				p.s.problemf("event %d is charged for a failure in front of it: %s error: %v", window[i].Seq, class, results[i])
			}
		}
	}
}

// handover is one call of Enqueue.
type handover struct {
	message *publish.Message
	calls   atomic.Int32
	result  error
	done    chan struct{}
}

// handOver enqueues messages without looking at what becomes of them, and waits for all.
func (e *env) handOver(ctx context.Context, pipeliner publish.Pipeliner,
	messages []*publish.Message,
) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, e.harness.Deadline)
	defer cancel()
	all := make([]*handover, len(messages))
	for i, message := range messages {
		all[i] = &handover{message: clone(message), done: make(chan struct{})}
	}
	e.mu.Lock()
	e.handovers = append(e.handovers, all...)
	e.mu.Unlock()
	for i, h := range all {
		pipeliner.Enqueue(ctx, messages[i], func(err error) {
			if h.calls.Add(1) == 1 {
				h.result = err
				close(h.done)
			}
		})
	}
	patience, stop := context.WithTimeout(context.WithoutCancel(ctx), e.harness.Deadline+e.harness.Grace)
	defer stop()
	results := make([]error, len(all))
	for i, h := range all {
		select {
		case <-h.done:
		case <-patience.Done():
			select {
			case <-h.done: // while nobody looked
			default:
				return nil, fmt.Errorf("event %d: done was not called within %v of its deadline", h.message.Seq, e.harness.Grace)
			}
		}
		results[i] = h.result
		e.note(h.message, h.result)
	}
	return results, nil
}

// checkHandovers runs after the publisher was closed: a second call of done may come late.
func (e *env) checkHandovers() {
	for _, h := range e.handovers {
		if calls := h.calls.Load(); calls != 1 {
			e.problemf("event %d: done was called %d times", h.message.Seq, calls)
		}
	}
}

// pipelineOrder: with nothing in the way.
func pipelineOrder(ctx context.Context, e *env) error {
	p, err := e.pipeline(ctx, 12, 60)
	if err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	e.use(Pipeline)
	return nil
}

// inTheMiddle puts a bad message into the middle of one key.
func (p *pipeline) inTheMiddle(bad *publish.Message) {
	p.bad = bad
	p.keys[1] = slices.Insert(p.keys[1], len(p.keys[1])/2, bad)
}

// pipelineTooLarge: an event in the middle is dead, and the aggregate goes on without it.
func pipelineTooLarge(ctx context.Context, e *env) error {
	p, err := e.pipeline(ctx, 4, 20)
	if err != nil {
		return err
	}
	_, bad, err := e.atLimit(1)
	if err != nil {
		return err
	}
	p.inTheMiddle(bad)
	return p.run(ctx)
}

// pipelineRejected: the broker rejects an event in the middle, and takes it when it is sent again.
func pipelineRejected(ctx context.Context, e *env) error {
	p, err := e.pipeline(ctx, 4, 20)
	if err != nil {
		return err
	}
	p.inTheMiddle(NewMessage(e.topic, 1, 1000))
	if p.heal, err = e.begin(ctx, e.reject(p.bad)); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if p.behind.Load() == 0 {
		e.problemf("harness: nothing was in flight behind the rejected message, so nothing was shown")
	}
	e.use(RejectMessage)
	return nil
}

// pipelineStopped: the broker goes away with messages in flight, and comes back.
func pipelineStopped(ctx context.Context, e *env) error {
	p, err := e.pipeline(ctx, 8, 0)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	back := make(chan struct{})
	for key := range p.keys {
		group.Go(func() {
			if err := p.sendUntil(ctx, key, back); err != nil {
				e.problemf("%v", err)
			}
		})
	}
	err = e.waitFor(ctx, func() bool { return p.acks.Load() >= 100 })
	if err == nil {
		err = p.stop(ctx)
	}
	close(back)
	group.Wait()
	if err != nil {
		return err
	}
	if p.behind.Load() == 0 {
		e.problemf("harness: nothing was in flight when the broker stopped, so nothing was shown")
	}
	return p.check(ctx)
}

// stop takes the broker away until messages have failed.
func (p *pipeline) stop(ctx context.Context) error {
	end, err := p.s.begin(ctx, p.s.harness.Stop)
	if err != nil {
		return err
	}
	defer end()
	_ = p.s.waitFor(ctx, func() bool { return p.behind.Load() > 0 })
	return nil
}

// sendUntil sends new messages of one key, until some were sent after the broker was back.
func (p *pipeline) sendUntil(ctx context.Context, key int, back <-chan struct{}) error {
	for number, after := 0, 0; after < 3; {
		var messages []*publish.Message
		for range min(p.pipeliner.Depth(), 50) {
			messages = append(messages, NewMessage(p.s.topic, key, int64(key*1_000_000+number)))
			number++
		}
		p.keys[key] = append(p.keys[key], messages...)
		if err := p.send(ctx, messages); err != nil {
			return err
		}
		select {
		case <-back:
			after++
		default:
		}
	}
	return nil
}
