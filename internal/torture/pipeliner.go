package torture

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// hostilePipeliner is [hostile] in front of a pipeliner. It owes relays what every pipeliner does: when it fails a
// message it fails all that are handed over behind it, until the relay knows of it and hands them over anew.
type hostilePipeliner struct {
	*hostile
	inner publish.Pipeliner

	mu    sync.Mutex
	lines map[string]*hostileLine
}

// hostileLine is what is known about the messages of one key on one topic.
type hostileLine struct {
	failed bool
	// lastFailed is the sequence of the last one that failed, and unreported how many the relay does not know of. What is
	// handed over anew begins with one that failed; what is beyond lastFailed was decided on before the relay knew.
	lastFailed int64
	unreported int
	// sent are those that the broker's publisher has, in order.
	sent []*publish.Message
}

var errBehind = fmt.Errorf("one before it failed, for the proof: %w", publish.ErrNotSent)

// Depth is the broker's.
func (p *hostilePipeliner) Depth() int { return p.inner.Depth() }

// Enqueue hands a message over, unless it is to fail or is behind one that did.
func (p *hostilePipeliner) Enqueue(ctx context.Context, message *publish.Message, done func(error)) {
	chance := p.chance(message.ID)
	p.mu.Lock()
	l := p.lines[message.Topic+"/"+message.Key]
	if l == nil {
		l = &hostileLine{lastFailed: math.MinInt64}
		p.lines[message.Topic+"/"+message.Key] = l
	}
	err := errBehind
	if !l.failed || l.unreported == 0 && message.Seq <= l.lastFailed {
		err = p.failure(message, chance)
	}
	if err != nil {
		l.fail(message.Seq)
		p.mu.Unlock()
		go p.report(l, done, err)
		return
	}
	l.failed, l.lastFailed = false, math.MinInt64
	l.sent = append(l.sent, message)
	p.mu.Unlock()
	p.inner.Enqueue(ctx, message, func(err error) {
		if err != nil {
			p.answered(l, message)
			done(err)
			return
		}
		time.AfterFunc(late(chance), func() { p.acknowledge(l, message, chance, done) })
	})
}

// acknowledge reports a success, or loses it. Only what has nothing behind it is lost: the rest would have to fail
// with it, though the broker has it.
func (p *hostilePipeliner) acknowledge(l *hostileLine, message *publish.Message, chance uint64, done func(error)) {
	p.mu.Lock()
	last := len(l.sent) > 0 && l.sent[len(l.sent)-1] == message
	l.remove(message)
	var err error
	if last && !l.failed {
		if err = p.loseAck(message.ID, chance); err != nil {
			l.fail(message.Seq)
		}
	}
	p.mu.Unlock()
	if err != nil {
		p.report(l, done, err)
		return
	}
	done(nil)
}

func (p *hostilePipeliner) answered(l *hostileLine, message *publish.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.remove(message)
}

// report lets the relay know of a failure.
func (p *hostilePipeliner) report(l *hostileLine, done func(error), err error) {
	p.mu.Lock()
	l.unreported-- // before: the relay may hand over anew at once
	p.mu.Unlock()
	done(err)
}

func (l *hostileLine) fail(seq int64) {
	l.failed, l.lastFailed = true, seq
	l.unreported++
}

func (l *hostileLine) remove(message *publish.Message) {
	for i := range l.sent {
		if l.sent[i] == message {
			l.sent = append(l.sent[:i], l.sent[i+1:]...)
			return
		}
	}
}
