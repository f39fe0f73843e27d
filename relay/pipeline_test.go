package relay

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// willing is a pipeliner that acknowledges whatever it gets.
type willing struct{ got []outbox.ID }

func (w *willing) Publish(context.Context, *publish.Message) error { return nil }
func (w *willing) Depth() int                                      { return 8 }

func (w *willing) Enqueue(_ context.Context, message *publish.Message, done func(error)) {
	w.got = append(w.got, message.ID) // read only after done
	done(nil)
}

// S4: what is handed over behind an event that never gets to the broker is kept back, until that event comes
// again. The broker cannot know that something is missing.
func TestNothingPassesAnEventThatWasNotSent(t *testing.T) {
	t.Parallel()
	publisher := &willing{}
	s := newTestSender(t, publisher)
	results := make(chan result, 8)
	s.results = results
	send := func(p *core.Publish, first bool) core.Class {
		p.DecidedAt, p.First = s.clock.now(), first
		s.send([]*core.Publish{p})
		select {
		case result := <-results:
			return result.outcome.Class
		case <-time.After(time.Minute):
			t.Fatalf("event %s has no outcome", p.Event.ID)
			return core.Unknown
		}
	}
	head, follower, other := stored(), stored(), stored()
	other.Topic = "invoices"
	whole := head.Event.Payload
	head.Event.Payload = []byte(`{}`)
	if class := send(head, true); class != core.Terminal {
		t.Errorf("the head: class %d", class)
	}
	if class := send(follower, false); class != core.NotSent {
		t.Errorf("behind the head: class %d", class)
	}
	if class := send(other, true); class != core.Acknowledged {
		t.Errorf("on another topic: class %d", class)
	}
	head.Event.Payload = whole
	for i, p := range []*core.Publish{head, follower} {
		if class := send(p, i == 0); class != core.Acknowledged {
			t.Errorf("%d again: class %d", i, class)
		}
	}
	if want := []outbox.ID{other.Event.ID, head.Event.ID, follower.Event.ID}; !slices.Equal(publisher.got, want) {
		t.Errorf("the broker got %v, want %v", publisher.got, want)
	}
}

// tardy is a pipeliner that says whose fault it is when the deadline has passed.
type tardy struct {
	willing
	answers bool
}

func (p *tardy) Enqueue(ctx context.Context, _ *publish.Message, done func(error)) {
	context.AfterFunc(ctx, func() {
		if p.answers {
			time.Sleep(time.Millisecond) // synctest: behind everybody else who heard of the deadline
			done(&publish.TopicError{Err: errors.New("no answer in time")})
		}
	})
}

// A deadline that passes is told by the publisher, who knows its broker. Only for one that says nothing the relay says
// that nobody knows.
func TestThePublisherSaysWhatADeadlineMeans(t *testing.T) {
	t.Parallel()
	for answers, want := range map[bool]core.Class{true: core.RouteFault, false: core.Unknown} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestSender(t, &tardy{answers: answers})
			results := make(chan result, 8)
			s.results = results
			work, end := context.WithCancel(t.Context())
			s.work = work
			p := stored()
			p.DecidedAt, p.First = s.clock.now(), true
			s.send([]*core.Publish{p})
			if got := (<-results).outcome.Class; got != want {
				t.Errorf("answers %v: class %d, want %d", answers, got, want)
			}
			time.Sleep(time.Second) // synctest: until the publisher has answered too
			end()
			s.running.Wait()
		})
	}
}
