package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// Erase replaces payload and headers of events by the hashes of what was there, in the table and in their dead letters.
// It is for events that will not be published any more: published, discarded and dead ones, without a copy that is
// still to be sent. What was erased is never redriven or redelivered. Of an event that retention has deleted it erases
// the dead letters that are left. Sent again, the action erases those events only that it has not erased: a large one
// comes in parts, each with at most [MaxEvents] events.
func (o *Operator) Erase(ctx context.Context, action Action, events ...outbox.ID) (results []Result, err error) {
	if err := action.check(len(events)); err != nil {
		return nil, fmt.Errorf("operator: erase: %w", err)
	}
	if strings.TrimSpace(action.Reason) == "" {
		return nil, errors.New("operator: erase: a reason is required: nobody can bring back what was there")
	}
	if len(events) == 0 {
		return nil, nil
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, o.erase, action.Actor, action.Reason, texts(events), action.ID.String())
		if err != nil {
			return err //nolint:wrapcheck // named below
		}
		results, err = read(rows, events, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("operator: erase: %w", err)
	}
	return results, nil
}

// An ErasurePlan is what an erasure would come to.
type ErasurePlan struct {
	// Events are those that would be erased, in the order in which they were found.
	Events []outbox.ID `json:"-"`
	// Erased is how many of them there are by state; [StateDeleted] is that of those of which only dead letters are left.
	Erased map[string]int `json:"erased"`
	// Kept is how many would not be, by the state in which they may still be published, or by what else keeps them:
	// "erased before", "a copy is to be sent", "not found".
	Kept map[string]int `json:"kept"`
	// Unasked are the fields of the filter that a dead letter does not have. Where there are some, dead letters of events
	// that retention has deleted were not looked at: what they hold stays.
	Unasked []string `json:"unasked,omitempty"`
}

// TooManyError says that more events would be erased than an action may have.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("more than %d events would be erased", e.Most)
}

// mostKept is how many events a search for an erasure may find that are kept, beside those that it may erase: it
// keeps their ids.
const mostKept = 1_000_000

// PlanErasure finds the events that a filter means, and tells what an erasure would come to. Those that retention has
// deleted it finds by their dead letters. It changes nothing, and the grants of the viewer role are enough, unless the
// filter asks for data. More that would be erased than so many are a [TooManyError].
func (o *Operator) PlanErasure(ctx context.Context, filter Filter, most int) (ErasurePlan, error) {
	plan := ErasurePlan{Erased: map[string]int{}, Kept: map[string]int{}, Unasked: filter.notOfLetters()}
	var waiting []outbox.ID
	count := func() error {
		for part := range slices.Chunk(waiting, MaxEvents) {
			if err := o.look(ctx, "erasure", func(l *looking) error { return plan.add(ctx, l, part) }); err != nil {
				return err
			}
			if len(plan.Events) > most {
				return fmt.Errorf("operator: erasure: %w", notUnderstoodError{&TooManyError{Most: most}})
			}
		}
		waiting = waiting[:0]
		return nil
	}
	// As it goes: where there are too many, nobody waits until all of them are found.
	err := o.meant(ctx, filter, most+mostKept, func(events []outbox.ID) error {
		if waiting = append(waiting, events...); len(waiting) < MaxEvents {
			return nil
		}
		return count()
	})
	if err != nil {
		return plan, err
	}
	return plan, count()
}

// ErasedBy are the events that an action has erased so far: one that was cut off goes on.
func (o *Operator) ErasedBy(ctx context.Context, action outbox.ID) (events []outbox.ID, err error) {
	err = o.look(ctx, "erasure", func(l *looking) error {
		rows, err := l.Query(ctx, "SELECT a.event_id FROM "+l.table("outbox_actions")+
			" a WHERE a.action_id = $1::text::uuid AND a.verb = 'erase'", action.String())
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		for _, id := range ids {
			events = append(events, outbox.ID(id))
		}
		return err //nolint:wrapcheck // look says what it was
	})
	return events, err
}

// add counts what an erasure would find of some events.
func (p *ErasurePlan) add(ctx context.Context, l *looking, events []outbox.ID) error {
	rows, err := l.Query(ctx, l.sql("erasure"), texts(events))
	if err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	erased := map[string]bool{}
	var id string
	var is *int16
	var there, finished, before, asked bool
	_, err = pgx.ForEachRow(rows, []any{&id, &is, &there, &finished, &before, &asked}, func() error {
		stands := StateDeleted
		if is != nil {
			stands = state.State(*is).String()
		}
		switch {
		case !there:
			p.Kept["not found"]++
		case before:
			p.Kept["erased before"]++
		case asked:
			p.Kept["a copy is to be sent"]++
		case !finished:
			p.Kept[stands]++
		default:
			p.Erased[stands]++
			erased[id] = true
		}
		return nil
	})
	for _, event := range events {
		if erased[event.String()] {
			p.Events = append(p.Events, event)
		}
	}
	return err //nolint:wrapcheck // look says what it was
}
