package torture

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/relay"
)

// hostilePipeliner is [hostile] in front of a pipeliner. It owes relays what every pipeliner does: when it fails a
// message it fails all that are handed over behind it, until the relay, which was told, hands them over anew.
type hostilePipeliner struct {
	*hostile
	inner relay.Pipeliner

	mu    sync.Mutex
	lines map[string]*hostileLine
}

// hostileLine is what is known about the messages of one key on one topic.
type hostileLine struct {
	failed bool
	// told is the sequence of the last one that failed, and untold how many the relay does not know of. What is handed
	// over anew begins with one that failed; what is beyond told was decided on before the relay knew.
	told   int64
	untold int
	// sent are those that the broker's publisher has, in order.
	sent []*relay.Message
}

var errBehind = fmt.Errorf("one before it failed, for the proof: %w", relay.ErrNotSent)

// Depth is the broker's.
func (p *hostilePipeliner) Depth() int { return p.inner.Depth() }

// Enqueue hands a message over, unless it is to fail or is behind one that did.
func (p *hostilePipeliner) Enqueue(ctx context.Context, message *relay.Message, done func(error)) {
	chance := p.chance(message.ID)
	p.mu.Lock()
	l := p.lines[message.Topic+"/"+message.Key]
	if l == nil {
		l = &hostileLine{told: math.MinInt64}
		p.lines[message.Topic+"/"+message.Key] = l
	}
	err := errBehind
	if !l.failed || l.untold == 0 && message.Seq <= l.told {
		err = p.refusal(message, chance)
	}
	if err != nil {
		l.fail(message.Seq)
		p.mu.Unlock()
		go p.tell(l, done, err)
		return
	}
	l.failed, l.told = false, math.MinInt64
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

// acknowledge tells of a success, or loses it. Only what has nothing behind it is lost: the rest would have to fail
// with it, though the broker has it.
func (p *hostilePipeliner) acknowledge(l *hostileLine, message *relay.Message, chance uint64, done func(error)) {
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
		p.tell(l, done, err)
		return
	}
	done(nil)
}

func (p *hostilePipeliner) answered(l *hostileLine, message *relay.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.remove(message)
}

// tell lets the relay know of a failure.
func (p *hostilePipeliner) tell(l *hostileLine, done func(error), err error) {
	p.mu.Lock()
	l.untold-- // before: the relay may hand over anew at once
	p.mu.Unlock()
	done(err)
}

func (l *hostileLine) fail(seq int64) {
	l.failed, l.told = true, seq
	l.untold++
}

func (l *hostileLine) remove(message *relay.Message) {
	for i := range l.sent {
		if l.sent[i] == message {
			l.sent = append(l.sent[:i], l.sent[i+1:]...)
			return
		}
	}
}
