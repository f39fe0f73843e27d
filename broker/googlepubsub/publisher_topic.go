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
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/googleapis/gax-go/v2"

	"github.com/posthaste-dev/posthaste/publish"
)

// topic is the library's publisher of one topic, and what we know about its keys.
//
// What the library does (v2.8.0), since everything below follows from it:
//
//   - Publish takes its context for the flow control alone. The request is sent with a context of its own,
//     which ends Timeout after the request began, whatever has become of the caller's context. A request of a key
//     begins when the one before it has ended, and when one of NumGoroutines workers is free: they are as many as
//     there can be messages, so that no key waits for another one.
//   - A request holds messages of one key only; one bad message fails all of them with one error. Without
//     ordering, all messages of the topic share requests.
//   - When a request of a key fails, the key is paused, and what waits behind it fails with
//     ErrPublishingPaused. So does what waits for its request when a message behind it gives up waiting for
//     the flow control: that pauses the key as well, and is the only way to have it paused.
//   - Publish does not look whether its key is paused; the message fails when its request would begin.
//     ResumePublish while messages wait therefore sends them, ahead of the one that failed.
type topic struct {
	library *pubsub.Publisher
	client  *pubsub.Client
	config  PublisherConfig
	maxSize int // of a message, as the library counts it

	unordered bool

	unanswered, running *sync.WaitGroup // the publisher's

	mu        sync.Mutex
	lines     map[string]*line // by the key of the message
	swept     time.Time
	abandoned bool // the publisher closes, and waits no longer
}

// handOver is a message that the relay gave us and waits to hear of.
type handOver struct {
	ctx     context.Context //nolint:containedctx // a call that outlives the function that made it
	cancel  context.CancelCauseFunc
	message *publish.Message
	done    func(error)
	// knows tells that the relay knows of every failure of this key: it publishes one at a time.
	knows bool
	// notSent is why the message is not sent at all. Like result it is certain when handed is closed.
	notSent error

	handed chan struct{} // closed when the library has the message, or never will
	result *pubsub.PublishResult

	// Guarded by the topic's mutex.
	answered bool
	alone    bool // it was sent in a request of its own
	unwatch  func() bool
}

// answer is what the relay is to be told.
type answer struct {
	to  *handOver
	err error
}

func (p *Publisher) newTopic(name string) *topic {
	library := p.client.Publisher(name)
	library.PublishSettings = p.config.settings()
	unordered := p.config.Unordered || slices.ContainsFunc(p.config.UnorderedTopics, func(each string) bool {
		return p.client.Publisher(each).String() == library.String()
	})
	library.EnableMessageOrdering = !unordered
	return &topic{
		library: library, client: p.client, config: p.config, unordered: unordered,
		maxSize: maxMessageSize(library.String()), lines: map[string]*line{},
		unanswered: &p.unanswered, running: &p.running,
	}
}

// take puts a hand-over at the end of its key's line, or refuses it.
func (t *topic) take(h *handOver) {
	t.unanswered.Add(1)
	t.mu.Lock()
	if t.abandoned {
		h.cancel(errClosing)
	}
	l := t.lines[h.message.Key]
	if l == nil {
		l = &line{name: h.message.Key, key: t.orderingKey(h.message.Key)}
		t.lines[h.message.Key] = l
	}
	if !l.admits(h, time.Now()) {
		rejected := l.reject(h)
		t.mu.Unlock()
		go t.callBack(l, rejected)
		return
	}
	l.goOn()
	l.waiting = append(l.waiting, h)
	h.unwatch = context.AfterFunc(h.ctx, func() { t.expire(l, h) })
	t.mu.Unlock()
	t.feed(l)
}

// feed gives the library what waits, in order, unless the line has to be empty first. Whoever feeds
// already does it for everybody.
func (t *topic) feed(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.feeding {
		return
	}
	l.feeding = true
	for len(l.waiting) > 0 && t.mayGo(l) {
		h := l.next()
		if h.notSent == nil && h.ctx.Err() != nil {
			h.notSent = notSentInTime(h.ctx)
		}
		// Nothing may pass a message that is not sent.
		l.holding = l.holding || h.notSent != nil
		if !l.draining {
			l.draining = true
			t.running.Go(func() { t.drain(l) })
		}
		t.mu.Unlock()
		if h.notSent == nil {
			h.result = t.library.Publish(h.ctx, t.encode(h.message, l.key)) // may wait for the flow control
			h.notSent = declined(h.ctx, h.result)
		}
		close(h.handed)
		t.mu.Lock()
		l.holding = l.holding || h.notSent != nil // the library pauses a key of which it turned one away
	}
	l.feeding = false
}

// mayGo tells whether the library may have the next message of the line, and is the one place where a
// paused key goes on: the library has answered everything that was behind the failure, and the relay,
// which was told, has handed over again.
func (t *topic) mayGo(l *line) bool {
	if t.unordered && len(l.sent) > 0 {
		return false // the library would not hold it back behind a failure
	}
	if !l.holding {
		return true
	}
	if len(l.sent) > 0 {
		return false
	}
	t.library.ResumePublish(l.key)
	l.holding = false
	return true
}

// drain answers what the library has, in order, until it has nothing of the line.
func (t *topic) drain(l *line) {
	for {
		t.mu.Lock()
		if len(l.sent) == 0 {
			l.draining = false
			t.retire(l)
			t.mu.Unlock()
			t.feed(l)
			return
		}
		h := l.sent[0]
		t.mu.Unlock()
		err := t.outcome(l, h)
		t.mu.Lock()
		var answers []answer
		switch {
		case h.answered:
		case err == nil:
			answers = l.succeed(h)
		default:
			answers = l.fail(h, err, time.Now())
			t.sweep(time.Now())
		}
		l.sent = l.sent[1:]
		t.mu.Unlock()
		t.callBack(l, answers)
	}
}

// outcome waits for the library and says what became of a message.
func (t *topic) outcome(l *line, h *handOver) error {
	<-h.handed
	if h.notSent != nil {
		return h.notSent
	}
	<-h.result.Ready()
	_, err := h.result.Get(h.ctx)
	if err == nil {
		return nil
	}
	t.mu.Lock()
	l.holding = true // the library paused the key
	// All ahead of an unanswered message have succeeded. So this error, where it can be another's, is of
	// one behind it, and this one is owed a request of its own.
	h.alone = !h.answered && maybeAnothers(err)
	t.mu.Unlock()
	if h.alone {
		err = t.sendAlone(h, l.key)
	}
	return classify(err)
}

// sendAlone sends a message in a request of its own. The library's queue of the key stands still meanwhile:
// the key is paused, and is resumed when the line is empty.
func (t *topic) sendAlone(h *handOver, key string) error {
	ctx, cancel := context.WithTimeout(h.ctx, t.config.Timeout)
	defer cancel()
	message := t.encode(h.message, key)
	_, err := t.client.TopicAdminClient.Publish(ctx, &pubsubpb.PublishRequest{
		Topic: t.library.String(),
		Messages: []*pubsubpb.PubsubMessage{
			{Data: message.Data, Attributes: message.Attributes, OrderingKey: message.OrderingKey},
		},
	}, gax.WithRetry(never))
	if err != nil {
		return fmt.Errorf("alone in its request: %w", err)
	}
	return nil
}

// expire answers a message whose context ended. The request that is under way may still deliver it, so the line holds
// until the library is through with it. What is not under way is not sent any more.
func (t *topic) expire(l *line, h *handOver) {
	t.mu.Lock()
	if !slices.Contains(l.waiting, h) && !h.answered {
		t.mu.Unlock()
		<-h.handed // soon: with its context ended, it waits for no room
		t.mu.Lock()
	}
	var answers []answer
	given := false
	if !h.answered {
		err := t.certain(l, h)
		given = !errors.Is(err, publish.ErrNotSent)
		answers = l.fail(h, err, time.Now())
	}
	t.mu.Unlock()
	if given {
		t.pause(l.key)
	}
	t.callBack(l, answers)
}

// certain says of a message whose context ended what is known: that it was not sent, or nothing.
func (t *topic) certain(l *line, h *handOver) error {
	if slices.Contains(l.waiting, h) {
		return notSentInTime(h.ctx)
	}
	if h.notSent != nil {
		return h.notSent
	}
	select {
	case <-h.result.Ready():
		// The request that it shared was refused, and one of its own has not begun.
		if _, err := h.result.Get(h.ctx); !h.alone && maybeAnothers(err) {
			return notSentInTime(h.ctx)
		}
	default:
	}
	return gaveUp(h.ctx)
}

// pause has the library send nothing more of a key than the request that is under way. It has no call for that, but
// does so when a message gives up waiting for room, as one does whose context has ended.
func (t *topic) pause(key string) {
	ended, end := context.WithCancel(context.Background())
	end()
	t.library.Publish(ended, &pubsub.Message{OrderingKey: key})
}

// abandon gives up everything that is not answered.
func (t *topic) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abandoned = true
	for _, l := range t.lines {
		for _, h := range slices.Concat(l.sent, l.waiting) {
			h.cancel(errClosing)
		}
	}
}

// callBack calls back, in order.
func (t *topic) callBack(l *line, answers []answer) {
	for _, a := range answers {
		if a.to.unwatch != nil {
			a.to.unwatch()
		}
		if a.err != nil {
			t.mu.Lock()
			l.untold--
			t.mu.Unlock()
		}
		a.to.cancel(nil)
		a.to.done(a.err)
		t.unanswered.Done()
	}
}

// retire forgets a line that is empty and healthy.
func (t *topic) retire(l *line) {
	if len(l.sent)+len(l.waiting) > 0 || l.failed {
		return
	}
	t.forget(l)
}

// forget removes a line. The library must not keep a key paused that nobody would ever resume.
func (t *topic) forget(l *line) {
	if l.holding {
		t.library.ResumePublish(l.key)
		l.holding = false
	}
	if t.lines[l.name] == l {
		delete(t.lines, l.name)
	}
}

// sweep forgets keys that failed long ago and were never handed over again: their lane moved to another
// relay, or their event is dead.
func (t *topic) sweep(now time.Time) {
	if now.Sub(t.swept) < stragglers {
		return
	}
	t.swept = now
	for _, l := range t.lines {
		if l.idle() && now.Sub(l.failedAt) > stragglers {
			t.forget(l)
		}
	}
}

// encode makes the library's message. The body is shared: neither side changes it. Attributes are not: a client with
// tracing writes its own among them.
func (t *topic) encode(message *publish.Message, key string) *pubsub.Message {
	return &pubsub.Message{Data: message.Body, Attributes: maps.Clone(message.Attributes), OrderingKey: key}
}
