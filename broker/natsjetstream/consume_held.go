package natsjetstream

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// A delivery is a message that the loop has and the server waits for.
type delivery struct {
	message    jetstream.Msg
	meta       *jetstream.MsgMetadata
	attributes map[string]string
	line       string // the aggregate
}

func newDelivery(message jetstream.Msg) *delivery {
	d := &delivery{message: message, attributes: Attributes(message.Headers())}
	var err error
	if d.meta, err = message.Metadata(); err != nil {
		d.meta = &jetstream.MsgMetadata{} // it came without a reply subject of JetStream's
	}
	// Without an aggregate a message has nobody to wait for.
	if event, _ := consumer.Read(d.attributes, nil); event.Aggregate.ID != "" {
		d.line = event.Key()
	} else {
		d.line = message.Reply()
	}
	return d
}

// held are the messages that the loop has, those that are handled and those that wait, in lines, one per aggregate.
type held struct {
	limit int
	freed chan struct{} // has a token when there is room again

	mu      sync.Mutex
	every   time.Duration
	all     map[*delivery]struct{}
	waiting map[string][]*delivery // by line, behind the one that is handled
}

func newHeld(limit int) *held {
	return &held{
		limit: limit, freed: make(chan struct{}, 1), all: map[*delivery]struct{}{}, waiting: map[string][]*delivery{},
	}
}

// room waits until there is some, and says how much. None: ctx has ended.
func (h *held) room(ctx context.Context) int {
	for ctx.Err() == nil {
		h.mu.Lock()
		room := h.limit - len(h.all)
		h.mu.Unlock()
		if room > 0 {
			return room
		}
		select {
		case <-h.freed:
		case <-ctx.Done():
		}
	}
	return 0
}

// add puts a message at the end of its line, and tells whether it is the only one.
func (h *held) add(d *delivery) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[d] = struct{}{}
	waiting, busy := h.waiting[d.line]
	if busy {
		h.waiting[d.line] = append(waiting, d)
	} else {
		h.waiting[d.line] = nil
	}
	return !busy
}

// drop forgets a message. When it returns, nothing more is said to keep it.
func (h *held) drop(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, d)
	select {
	case h.freed <- struct{}{}:
	default:
	}
}

// next returns the message behind this one, if there is one.
func (h *held) next(d *delivery) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.waiting[d.line]
	if len(waiting) == 0 {
		delete(h.waiting, d.line)
		return nil
	}
	h.waiting[d.line] = waiting[1:]
	return waiting[0]
}

// maxEvery bounds how long a change of the AckWait goes unnoticed.
const maxEvery = 10 * time.Second

// setAckWait says how soon a message comes again that nobody speaks for.
func (h *held) setAckWait(wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.every = min(wait/4, maxEvery)
}

// keep keeps the messages until ctx ends: it tells the server often enough that they are in progress, those that wait
// as well. If these words are lost the message comes again, and the inbox knows it.
func (h *held) keep(ctx context.Context) {
	for ctx.Err() == nil {
		_ = wait.For(ctx, h.keepAll())
	}
}

// keepAll says it once for all, and how soon it is to be said again. It has the lock meanwhile: said after a message
// was given back, it would put off its next delivery.
func (h *held) keepAll() (every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range h.all {
		_ = d.message.InProgress() // without a connection there is nothing to be done
	}
	return h.every
}
