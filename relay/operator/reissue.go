package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Reissue makes new events of old ones, at the tail, each with an id of its own and the header reissue_of: consumers
// handle them as something new. Old ones can be dead, published or discarded; a dead one is discarded with it, and its
// followers go. The answer has the new ids, zero where there is none. Sent again, the action makes nothing twice. Of an
// event that another action has issued again it makes none: that is not applicable, and has the id of the other one.
func (o *Operator) Reissue(ctx context.Context, action Action, events ...outbox.ID) (
	results []Result, made []outbox.ID, err error,
) {
	return o.reissue(ctx, action, reissue{}, events)
}

// ReissueDead is the same of dead events alone. What a reissue has discarded is none of them: another action makes no
// second new event, neither at the same time nor later.
func (o *Operator) ReissueDead(ctx context.Context, action Action, events ...outbox.ID) (
	results []Result, made []outbox.ID, err error,
) {
	return o.reissue(ctx, action, reissue{deadOnly: true}, events)
}

// ReissueAgain is [Operator.Reissue], also of events that another action has issued again.
func (o *Operator) ReissueAgain(ctx context.Context, action Action, events ...outbox.ID) (
	results []Result, made []outbox.ID, err error,
) {
	return o.reissue(ctx, action, reissue{again: true}, events)
}

// Edit makes a new event of an old one, with other data: an event itself is never changed. Otherwise it is as
// [Operator.Reissue].
func (o *Operator) Edit(ctx context.Context, action Action, event outbox.ID, data json.RawMessage) (
	result Result, made outbox.ID, err error,
) {
	return o.edit(ctx, action, event, reissue{data: data})
}

// EditAgain is [Operator.Edit], also of an event that another action has issued again or edited.
func (o *Operator) EditAgain(ctx context.Context, action Action, event outbox.ID, data json.RawMessage) (
	result Result, made outbox.ID, err error,
) {
	return o.edit(ctx, action, event, reissue{data: data, again: true})
}

func (o *Operator) edit(ctx context.Context, action Action, event outbox.ID, how reissue) (
	result Result, made outbox.ID, err error,
) {
	if len(how.data) == 0 {
		return result, made, errors.New("operator: edit: there are no data")
	}
	results, ids, err := o.reissue(ctx, action, how, []outbox.ID{event})
	if err != nil {
		return result, made, err
	}
	return results[0], ids[0], nil
}

// reissue is how events are issued again.
type reissue struct {
	data     json.RawMessage // nil: their own
	deadOnly bool
	again    bool // also where another action has
}

func (o *Operator) reissue(ctx context.Context, action Action, how reissue, events []outbox.ID) (
	results []Result, made []outbox.ID, err error,
) {
	err = action.check(len(events))
	if strings.TrimSpace(action.Reason) == "" {
		err = errors.Join(err, errors.New("a reason is required"))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("operator: reissue: %w", err)
	}
	if len(events) == 0 {
		return nil, nil, nil
	}
	statement := "SELECT event_id::text, outcome, was, new_id::text FROM " + o.function("outbox_reissue") +
		"($1::text, $2::text, $3::text[]::uuid[], $4::text::json, $5::text::uuid, $6::boolean, $7::boolean)"
	var body *string
	if how.data != nil {
		text := string(how.data)
		body = &text
	}
	once := func(events []outbox.ID) (results []Result, made []outbox.ID, err error) {
		err = o.inTx(ctx, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, statement, action.Actor, action.Reason, texts(events), body, action.ID.String(),
				how.deadOnly, how.again)
			if err != nil {
				return err //nolint:wrapcheck // named below
			}
			results, made, err = readReissued(rows, events)
			return err
		})
		return results, made, err
	}
	if results, made, err = once(events); err != nil {
		return nil, nil, fmt.Errorf("operator: reissue: %w", o.needsOperator(err))
	}
	if again := decided(results); len(again) > 0 {
		// Twice, as skip and discard: a relay may have put an event behind a block that ended.
		if _, _, err := once(again); err != nil {
			return nil, nil, fmt.Errorf("operator: reissue: it is done, but followers may still wait: send the same action "+
				"again: %w", o.needsOperator(err))
		}
	}
	o.ring(ctx)
	return results, made, nil
}

// readReissued puts the answer in the order of the events.
func readReissued(rows pgx.Rows, events []outbox.ID) ([]Result, []outbox.ID, error) {
	made := map[string]outbox.ID{}
	var newID *string
	results, err := read(rows, events, func(id string) (err error) {
		if newID != nil {
			made[id], err = outbox.ParseID(*newID)
		}
		return err
	}, &newID)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]outbox.ID, len(events))
	for i, event := range events {
		ids[i] = made[event.String()]
	}
	return results, ids, nil
}
