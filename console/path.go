package console

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// pathPage draws how events go: from producers into the outbox, through the lanes, to the topics.
func (q *request) pathPage() error {
	facts, err := q.outbox.pathFacts(q.Context())
	if err != nil {
		return err
	}
	facts.now = q.now
	return q.ok("path", "Path", 3, pathOf(facts))
}

func (s *served) pathFacts(ctx context.Context) (*pathFacts, error) {
	f := &pathFacts{}
	var topics []operator.Topic
	if err := sideBySide(
		func() (err error) { f.status, err = s.statusNow(ctx); return err },
		func() (err error) { f.relays, err = s.relaysNow(ctx, false); return err },
		func() (err error) { f.lanes, err = s.lanesNow(ctx); return err },
		func() (err error) { f.pauses, err = s.system.pauses.get(ctx, "", s.op.Pauses); return err },
		func() (err error) { f.writers, err = s.system.writers.get(ctx, "", s.op.OpenWriters); return err },
		func() (err error) { f.restored, err = s.system.restored.get(ctx, "", s.op.Restored); return err },
		func() (err error) { f.blocking, err = s.system.blocking.get(ctx, "", s.readBlocking); return err },
		func() (err error) { topics, err = s.topics.get(ctx, "", s.op.Topics); return err },
		func() error {
			minutes, err := s.series.get(ctx, "5", func(ctx context.Context) ([]operator.Minute, error) {
				return s.op.Series(ctx, 5, "")
			})
			if n := len(minutes); err == nil && n > 0 {
				f.in, f.out = float64(minutes[n-1].Arrived)/60, float64(minutes[n-1].Published)/60
			}
			return err
		},
	); err != nil {
		return nil, err
	}
	f.topics = topicLines(topics, f.status.Topics)
	return f, nil
}

// readBlocking reads the newest dead events that block their aggregates.
func (s *served) readBlocking(ctx context.Context) ([]operator.Event, error) {
	filter, err := operator.ParseFilter("state:blocking")
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	found, err := s.op.Events(ctx, filter, operator.Page{Limit: 4 * mostBlocked})
	return found.Events, err
}
