package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// actor is who the log of actions names.
const actor = "proof-crash"

// letter is a dead letter that nobody has decided about.
type letter struct {
	Number   int64
	Event    outbox.ID
	Blocking bool
}

// letters are the dead letters since the last that was seen, oldest first.
func (t *trial) letters(ctx context.Context) ([]letter, error) {
	rows, err := t.env.Pool.Query(ctx,
		t.env.SQL("SELECT id, event_id, blocking FROM {schema}.outbox_dlq WHERE id > $1 ORDER BY id"), t.lastLetter)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[letter])
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	if len(list) > 0 {
		t.lastLetter = list[len(list)-1].Number
	}
	return list, nil
}

// decide decides about dead events, in turn: cured and redriven, let be, discarded.
func (t *trial) decide(ctx context.Context, except ...outbox.ID) error {
	list, err := t.letters(ctx)
	if err != nil {
		return err
	}
	operatorEnv := operator.New(t.env.Pool, t.env.Run)
	for _, l := range list {
		if slices.Contains(except, l.Event) {
			continue
		}
		t.decided++
		do := operatorEnv.Redrive
		switch {
		case t.decided%3 == 1:
			if err := t.cure(l.Event); err != nil {
				return err
			}
		case t.decided%3 == 2 && l.Blocking:
			do = operatorEnv.Skip
		case t.decided%3 == 2:
			continue
		default:
			do = operatorEnv.Discard
		}
		results, err := do(ctx, operator.Action{ID: outbox.NewID(), Actor: actor, Reason: "a proof"}, l.Event)
		if err != nil {
			return err
		}
		for _, result := range results {
			if result.Outcome != operator.Done {
				t.problemf("an action on event %s, which has an open dead letter: %s, it was %s", l.Event, result.Outcome,
					result.Was)
			}
		}
	}
	return nil
}

// cure lets an event pass from now on.
func (t *trial) cure(id outbox.ID) error {
	if err := os.WriteFile(filepath.Join(t.folder, curedFolder, id.String()), nil, 0o600); err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	return nil
}
