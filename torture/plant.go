package torture

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/relay"
)

// The bugs that can be planted into the publishers of a run, to see the proof fail.
const (
	PlantSwap  = "swap"  // sends two messages of an aggregate in the wrong order
	PlantDrop  = "drop"  // acknowledges without sending
	PlantAlter = "alter" // changes a byte of the body
	PlantTwice = "twice" // sends twice for one publish
)

// Plants are the names of the bugs.
func Plants() []string { return []string{PlantDrop, PlantAlter, PlantTwice, PlantSwap} }

// plant puts a bug in front of the publisher. It strikes one event in about fifty.
func plant(name string, inner relay.Publisher) (relay.Publisher, error) {
	struck := func(m *relay.Message) bool { return mix(uint64(m.ID[15])|uint64(m.ID[14])<<8)%50 == 0 }
	switch name {
	case "":
		return inner, nil
	case PlantSwap:
		swap := &swapper{inner: inner, struck: struck, back: map[string]*relay.Message{}}
		return relay.Func(swap.publish), nil
	case PlantDrop:
		return relay.Func(func(ctx context.Context, m *relay.Message) error {
			if struck(m) {
				return nil
			}
			return inner.Publish(ctx, m)
		}), nil
	case PlantAlter:
		return relay.Func(func(ctx context.Context, m *relay.Message) error {
			if struck(m) {
				changed := *m
				changed.Body = bytes.Replace(m.Body, []byte(`"version":1`), []byte(`"version":2`), 1)
				m = &changed
			}
			return inner.Publish(ctx, m)
		}), nil
	case PlantTwice:
		return relay.Func(func(ctx context.Context, m *relay.Message) error {
			if err := inner.Publish(ctx, m); err != nil || !struck(m) {
				return err
			}
			// Later than the stream remembers, which would drop it; and for the relay it is published already.
			late := context.WithoutCancel(ctx)
			_ = wait.For(late, 2*duplicateWindow)
			_ = inner.Publish(late, m)
			return nil
		}), nil
	default:
		return nil, fmt.Errorf("torture: no bug is called %q", name)
	}
}

// swapper keeps a message back until the next one of its aggregate and topic has gone.
type swapper struct {
	inner  relay.Publisher
	struck func(*relay.Message) bool

	mu   sync.Mutex
	back map[string]*relay.Message
}

func (s *swapper) publish(ctx context.Context, m *relay.Message) error {
	key := m.Topic + "/" + m.Key
	s.mu.Lock()
	first := s.back[key]
	delete(s.back, key)
	if first == nil && s.struck(m) {
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
