package pubsubemulator

import (
	"context"
	"fmt"
	"path/filepath"
)

// replay brings the broker to where the journal ends: it applies the state changes and, between them,
// releases the messages that some subscription has not acknowledged, all in their old order.
func (b *broker) replay(dir string, past *recovered) error {
	ctx := context.Background()
	b.mu.Lock()
	defer b.mu.Unlock()
	changes := past.changes
	catchUp := func(before int64) error {
		for len(changes) > 0 && changes[0].Seq < before {
			if err := b.reapply(ctx, changes[0]); err != nil {
				return fmt.Errorf("replay %s, seq %d: %w", changes[0].Method, changes[0].Seq, err)
			}
			changes = changes[1:]
		}
		return nil
	}
	_, err := eachMessage(filepath.Join(dir, messagesFile), func(m *Message) error {
		if err := catchUp(m.Seq); err != nil {
			return err
		}
		b.accepted++
		return b.rerelease(m, past)
	})
	if err != nil {
		return damaged(err)
	}
	return catchUp(b.journal.seq + 1)
}

// rerelease publishes m again to the subscriptions that wait for it.
func (b *broker) rerelease(m *Message, past *recovered) error {
	topic := b.topics[m.Topic]
	if topic == nil {
		return nil
	}
	done := map[string]struct{}{}
	for name := range topic.subs {
		if _, acked := past.acked[name][m.ID]; acked {
			done[name] = struct{}{}
		}
	}
	if len(done) == len(topic.subs) {
		return nil
	}
	b.replayed++
	return b.release(m, done)
}
