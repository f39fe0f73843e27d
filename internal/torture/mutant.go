package torture

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// The mutants of the publishers of a run, to see the proof fail.
const (
	MutantSwap  = "swap"  // sends two messages of an aggregate in the wrong order
	MutantDrop  = "drop"  // acknowledges without sending
	MutantAlter = "alter" // changes a byte of the body
	MutantTwice = "twice" // sends twice for one publish
	// MutantInvent sends a message of an event that nobody emitted as well.
	MutantInvent = "invent"
)

// Mutants are their names.
func Mutants() []string {
	return []string{MutantDrop, MutantAlter, MutantTwice, MutantSwap, MutantInvent}
}

// withMutant puts a bug in front of the publisher. It hits one event in about fifty.
func withMutant(name string, inner publish.Publisher) (publish.Publisher, error) {
	chosen := func(m *publish.Message) bool { return mix(uint64(m.ID[15])|uint64(m.ID[14])<<8)%50 == 0 }
	switch name {
	case "":
		return inner, nil
	case MutantSwap:
		swap := &swapper{inner: inner, chosen: chosen, back: map[string]*publish.Message{}}
		return publish.PublisherFunc(swap.publish), nil
	case MutantDrop:
		return publish.PublisherFunc(func(ctx context.Context, m *publish.Message) error {
			if chosen(m) {
				return nil
			}
			return inner.Publish(ctx, m)
		}), nil
	case MutantAlter:
		return publish.PublisherFunc(func(ctx context.Context, m *publish.Message) error {
			if chosen(m) {
				changed := *m
				changed.Body = bytes.Replace(m.Body, []byte(`"version":1`), []byte(`"version":2`), 1)
				m = &changed
			}
			return inner.Publish(ctx, m)
		}), nil
	case MutantTwice:
		return publish.PublisherFunc(func(ctx context.Context, m *publish.Message) error {
			if err := inner.Publish(ctx, m); err != nil || !chosen(m) {
				return err
			}
			// Later than the stream remembers, which would drop it; and for the relay it is published already.
			late := context.WithoutCancel(ctx)
			_ = wait.For(late, 2*duplicateWindow)
			_ = inner.Publish(late, m)
			return nil
		}), nil
	case MutantInvent:
		return publish.PublisherFunc(func(ctx context.Context, m *publish.Message) error {
			if chosen(m) {
				invented := *m
				invented.ID = outbox.NewID()
				invented.Attributes = maps.Clone(m.Attributes)
				invented.Attributes["event_id"] = invented.ID.String()
				if err := inner.Publish(ctx, &invented); err != nil {
					return err
				}
			}
			return inner.Publish(ctx, m)
		}), nil
	default:
		return nil, fmt.Errorf("torture: no mutant is called %q", name)
	}
}

// swapper keeps a message back until the next one of its aggregate and topic has gone.
type swapper struct {
	inner  publish.Publisher
	chosen func(*publish.Message) bool

	mu   sync.Mutex
	back map[string]*publish.Message
}

func (s *swapper) publish(ctx context.Context, m *publish.Message) error {
	key := m.Topic + "/" + m.Key
	s.mu.Lock()
	first := s.back[key]
	delete(s.back, key)
	if first == nil && s.chosen(m) {
		kept := *m
		kept.Attributes = maps.Clone(m.Attributes)
		s.back[key] = &kept
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	if err := s.inner.Publish(ctx, m); err != nil || first == nil {
		return err
	}
	return s.inner.Publish(ctx, first)
}
