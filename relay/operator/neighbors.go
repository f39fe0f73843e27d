package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Neighbors are the events before and after one, among those of its aggregate and namespace, by number.
type Neighbors struct {
	// Before and After are nil where there is none in the table.
	Before *Event `json:"before,omitempty"`
	After  *Event `json:"after,omitempty"`
	// Complete tells that one that is nil is not there. Of an aggregate with 10,000 events and more only what is near is
	// looked at: among as many numbers of the lane to each side.
	Complete bool `json:"complete"`
}

// Neighbors finds the events before and after one of the same aggregate and namespace. Where the event itself is not in
// the table the error is [ErrNoEvent]. The grants of the viewer role are enough.
func (o *Operator) Neighbors(ctx context.Context, event outbox.ID) (found Neighbors, err error) {
	err = o.look(ctx, "neighbors", func(l *looking) error {
		var many bool
		var ids [2]*string
		var numbers [2]*int64
		err := l.QueryRow(ctx, l.sql("neighbors"), event.String(), min(l.window, mostGathered)).
			Scan(&many, &ids[0], &numbers[0], &ids[1], &numbers[1])
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%s: %w", event, ErrNoEvent)
		}
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		for i, into := range []**Event{&found.Before, &found.After} {
			if ids[i] == nil {
				continue
			}
			if *into, err = l.numbered(ctx, *ids[i], *numbers[i]); err != nil {
				return err
			}
		}
		found.Complete = !many || found.Before != nil && found.After != nil
		return nil
	})
	return found, err
}

// numbered reads the event with an id and a number: two may have one id.
func (l *looking) numbered(ctx context.Context, id string, number int64) (*Event, error) {
	parsed, err := outbox.ParseID(id)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(ctx, l, Filter{IDs: []outbox.ID{parsed}}, Page{})
	if err != nil {
		return nil, err
	}
	page, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	for i := range page.Events {
		if page.Events[i].Seq == number {
			return &page.Events[i], nil
		}
	}
	return nil, fmt.Errorf("%s: %w", id, ErrNoEvent)
}
