package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// mostHistory is how many dead letters and actions of one event are shown.
const mostHistory = 100

// ErrNoEvent says that an event is not in the table. [Operator.Explain] says what is known about such a one, and
// [Operator.Left] has its dead letters.
var ErrNoEvent = errors.New("there is no such event")

// EventDetail is everything that the tables have about one event.
type EventDetail struct {
	Event
	// Holder is who holds the event's lane.
	Holder LaneHolder `json:"holder"`
	// History has the publishes that failed, by their numbers: of each event the first 5 and the last 15 are kept.
	History []Attempt `json:"history,omitempty"`
	// DeadLetters and Actions are the newest 100 of it, the newest first.
	DeadLetters []DeadLetter `json:"deadLetters,omitempty"`
	Actions     []ActionDone `json:"actions,omitempty"`
}

// A LaneHolder is the relay that holds a lane. Relay is empty where nobody does.
type LaneHolder struct {
	Lane  int    `json:"lane"`
	Relay string `json:"relay,omitempty"`
	// Alive tells whether its lease has not ended; LastBeat is when it last said that it is alive, and Since since when
	// it holds the lane.
	Alive    bool       `json:"alive"`
	LastBeat *time.Time `json:"lastBeat,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	// Floor is the number at and below which every event of the lane is settled or held, as the holder said last.
	Floor int64 `json:"floor"`

	id          string
	owned       bool
	lease       time.Duration
	crashes     int
	marked      string // an event that is sent alone
	markedWhile int    // so many relays died while they sent it
}

// An Attempt is a publish that failed, or whose outcome nobody knows.
type Attempt struct {
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Relay  string    `json:"relay,omitempty"` // its name, while the relay is known
	Class  string    `json:"class"`           // rejected, terminal, topic_fault or unknown
	Topic  string    `json:"topic"`
	Error  string    `json:"error"`
}

// An ActionDone is what an operator did about an event.
type ActionDone struct {
	ID     outbox.ID `json:"id"`
	Verb   string    `json:"verb"`
	Actor  string    `json:"actor"`
	Role   string    `json:"role"` // of the database
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Event reads everything about one event. Payload, headers and dedupe key only where they are asked for: the roles
// viewer and operator may not read them. Where it is not in the table the error is [ErrNoEvent].
func (o *Operator) Event(ctx context.Context, id outbox.ID, payload bool) (EventDetail, error) {
	var detail EventDetail
	err := o.look(ctx, "event", func(l *looking) (err error) {
		detail.Event, err = l.event(ctx, id, payload)
		if sqlstate.PermissionDenied(err) && payload {
			return ErrPayloads
		}
		if err != nil {
			return err
		}
		if detail.Holder, err = l.holder(ctx, detail.Lane); err != nil {
			return err
		}
		return o.past(ctx, l, id, &detail)
	})
	return detail, err
}

// StateDeleted is the State of an event that is not in the table any more, and of which a dead letter is left.
const StateDeleted = "deleted"

// Left reads what is left of an event that is not in the table any more: its dead letters, and what operators did about
// it. The facts are those of the newest dead letter, the State is [StateDeleted], and a lane there is not. The payload
// is for [Operator.Look]. Where the event is in the table, or no dead letter of it is left, the error is [ErrNoEvent].
func (o *Operator) Left(ctx context.Context, id outbox.ID) (EventDetail, error) {
	var detail EventDetail
	err := o.look(ctx, "event", func(l *looking) error {
		_, err := l.event(ctx, id, false)
		switch {
		case err == nil:
			return fmt.Errorf("%s is not deleted: %w", id, ErrNoEvent)
		case !errors.Is(err, ErrNoEvent):
			return err
		}
		if lost := o.past(ctx, l, id, &detail); lost != nil {
			return lost
		}
		if len(detail.DeadLetters) == 0 {
			return err
		}
		letter := detail.DeadLetters[0]
		detail.Event = Event{
			ID: id, Seq: letter.Seq, Namespace: letter.Namespace, Type: letter.Type, AggregateType: letter.AggregateType,
			AggregateID: letter.AggregateID, Tenant: letter.Tenant, Topic: letter.Topic, State: StateDeleted,
			CreatedAt: letter.CreatedAt, Attempts: letter.Attempts, LastError: letter.Detail, Erased: letter.Erased,
		}
		return nil
	})
	return detail, err
}

// past reads what happened to an event.
func (o *Operator) past(ctx context.Context, l *looking, id outbox.ID, detail *EventDetail) (err error) {
	if detail.DeadLetters, err = o.lettersOf(ctx, l, id); err != nil {
		return err
	}
	if detail.History, err = l.attemptsOf(ctx, id); err != nil {
		return err
	}
	detail.Actions, err = l.actionsOf(ctx, id)
	return err
}

// event reads the row of one event.
func (l *looking) event(ctx context.Context, id outbox.ID, payload bool) (Event, error) {
	s, err := newSearch(ctx, l, Filter{IDs: []outbox.ID{id}}, Page{Limit: 1, Payloads: payload})
	if err != nil {
		return Event{}, err
	}
	page, err := s.run(ctx)
	if err != nil {
		return Event{}, err
	}
	if len(page.Events) == 0 {
		return Event{}, fmt.Errorf("%s: %w", id, ErrNoEvent)
	}
	return page.Events[0], nil
}

// holder asks who holds a lane.
func (l *looking) holder(ctx context.Context, lane int) (LaneHolder, error) {
	h := LaneHolder{Lane: lane}
	var ended bool
	var until *time.Time
	err := l.QueryRow(ctx, l.sql("lane"), lane).Scan(&h.owned, &h.id, &h.Relay, &ended, &h.Since, &h.LastBeat, &until,
		&h.Floor, &h.crashes, &h.marked, &h.markedWhile)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, nil // a lane of a layout that this version does not know
	}
	if !h.owned {
		h.Since = nil
	}
	if until != nil && h.LastBeat != nil {
		h.Alive, h.lease = !ended && !until.Before(l.now), until.Sub(*h.LastBeat)
	}
	return h, err //nolint:wrapcheck // look says what it was
}

// lettersOf are the dead letters of an event.
func (o *Operator) lettersOf(ctx context.Context, l *looking, id outbox.ID) ([]DeadLetter, error) {
	rows, err := l.Query(ctx, l.sql("event_letters"), id.String(), mostHistory)
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	return o.readLetters(ctx, l.Tx, false, numbers)
}

// attemptsOf are the publishes of an event that failed.
func (l *looking) attemptsOf(ctx context.Context, id outbox.ID) ([]Attempt, error) {
	rows, err := l.Query(ctx, l.sql("event_attempts"), id.String())
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Attempt]) //nolint:wrapcheck // look says what it was
}

// actionsOf is what operators did about an event.
func (l *looking) actionsOf(ctx context.Context, id outbox.ID) ([]ActionDone, error) {
	rows, err := l.Query(ctx, l.sql("event_actions"), id.String(), mostHistory)
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	var done []ActionDone
	var a ActionDone
	var action string
	_, err = pgx.ForEachRow(rows, []any{&action, &a.Verb, &a.Actor, &a.Role, &a.Reason, &a.At}, func() (err error) {
		one := a
		if one.ID, err = outbox.ParseID(action); err != nil {
			return err
		}
		one.At = one.At.UTC()
		done = append(done, one)
		return nil
	})
	return done, err //nolint:wrapcheck // look says what it was
}
