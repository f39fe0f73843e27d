package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// Content is what of an event not everybody may see.
type Content struct {
	// Payload is what would have been published, byte for byte, or the hashes that an erasure has left; Headers a JSON
	// object or nil.
	Payload json.RawMessage `json:"payload"`
	Headers json.RawMessage `json:"headers,omitempty"`
	// DedupeKey is empty where the event has none.
	DedupeKey string `json:"dedupeKey,omitempty"`
}

// ErrMayNotLook says that the role may look at no payload by [Operator.Look], and which grant it needs.
var ErrMayNotLook = errors.New("this role may not look at payloads, headers and dedupe keys: run `outboxctl grant " +
	"reader <role>`, or SELECT outbox_grant('reader', '<role>')")

// Look shows payload, headers and dedupe key of one event, and writes who has seen them, and why, into the log of
// actions, with the verb look: where that cannot be written nothing is shown. They are the event's, or those of its
// newest dead letter where the event is not in the table any more; where there is neither the error is [ErrNoEvent],
// and nothing is logged. It needs the part reader of the outbox, and no right to the tables: else it is
// [ErrMayNotLook].
//
// The action is for looks alone. Sent again within 10 minutes with the same actor it is the same look; later, or with
// another actor, it is an error: take a new id for every look.
func (o *Operator) Look(ctx context.Context, action Action, event outbox.ID) (content Content, err error) {
	if err := action.check(1); err != nil {
		return Content{}, fmt.Errorf("operator: look: %w", err)
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		var payload string
		var headers *string
		err := tx.QueryRow(ctx, statementOf(o.schema, "content"), action.Actor, action.Reason, event.String(),
			action.ID.String()).Scan(&payload, &headers, &content.DedupeKey)
		content.Payload = json.RawMessage(payload)
		if headers != nil {
			content.Headers = json.RawMessage(*headers)
		}
		return err //nolint:wrapcheck // named below
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = fmt.Errorf("%s: %w", event, ErrNoEvent)
	case sqlstate.PermissionDenied(err):
		err = ErrMayNotLook
	}
	if err != nil { // also if it could not commit: what is not in the log nobody has seen
		return Content{}, fmt.Errorf("operator: look: %w", err)
	}
	return content, nil
}

// MayLook tells whether the role that is connected may look at payloads by [Operator.Look]: whether it is a reader.
func (o *Operator) MayLook(ctx context.Context) (bool, error) {
	missing, err := o.Lacking(ctx, "reader")
	return err == nil && len(missing) == 0, err
}
