package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Redelivery is how published events are delivered again.
type Redelivery struct {
	// Topic is where the copies go. Empty: where the events' types go.
	Topic string
	// Rate is how many are due per second, in the order of their numbers. Zero: all at once.
	Rate float64
}

// longestTopic is what outbox_requests takes, in characters.
const longestTopic = 255

// checkTopic lists what is wrong with the name of a topic; an empty one is none.
func checkTopic(name string) error {
	var problems []error
	if utf8.RuneCountInString(name) > longestTopic {
		problems = append(problems, fmt.Errorf("the topic's name has more than %d characters", longestTopic))
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		problems = append(problems, errors.New("the topic's name holds a control character or is not UTF-8"))
	}
	return errors.Join(problems...)
}

func (r Redelivery) check() error {
	problems := []error{checkTopic(r.Topic)}
	if r.Rate != 0 && !(r.Rate >= MinRate && r.Rate <= MaxRate) { // also of what is no number
		problems = append(problems, fmt.Errorf("the rate is %v: it must be from %v to %v, or 0 for none", r.Rate, MinRate,
			MaxRate))
	}
	return errors.Join(problems...)
}

// Redeliver asks for published events once more: the same ids and bytes, with the attribute redelivered. The relays
// send the copies beside live events, those of an aggregate in the order of the events, and the events themselves stay
// as they are. Sent again, the action asks for those events only that it has not asked for: a large one comes in parts,
// each with at most [MaxEvents] events that come behind those of the part before.
func (o *Operator) Redeliver(ctx context.Context, action Action, how Redelivery, events ...outbox.ID) (
	results []Result, err error,
) {
	if err := notUnderstood(errors.Join(action.check(len(events)), how.check())); err != nil {
		return nil, fmt.Errorf("operator: redeliver: %w", err)
	}
	if len(events) == 0 {
		return nil, nil
	}
	ids := make([]string, len(events))
	for i, id := range events {
		ids[i] = id.String()
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, o.redeliver, action.Actor, action.Reason, ids, how.Topic, how.Rate, action.ID.String())
		if err != nil {
			return err //nolint:wrapcheck // named below
		}
		results, err = read(rows, events, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("operator: redeliver: %w", err)
	}
	return results, nil
}

// Cancel ends what is open of the copies that an action asked for, and tells how many it ended and how many are left:
// those that a relay has in its hands, and whatever is beyond 10,000. When none is left, no copy is sent any more.
// Until then it is called again, with the same action.
func (o *Operator) Cancel(ctx context.Context, action Action, redelivery outbox.ID) (canceled, left int64, err error) {
	if err := action.check(0); err != nil {
		return 0, 0, fmt.Errorf("operator: cancel: %w", err)
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, o.cancel, action.Actor, action.Reason, redelivery.String(), action.ID.String()).
			Scan(&canceled, &left)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("operator: cancel: %w", err)
	}
	return canceled, left, nil
}

// inTx runs something that writes in a transaction of its own. At any other level a function would not see what others
// did while it waited for their locks.
func (o *Operator) inTx(ctx context.Context, do func(pgx.Tx) error) error {
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
