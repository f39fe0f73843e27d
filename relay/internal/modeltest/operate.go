package modeltest

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// operate does a verb with the functions that people have.
func (p *postgres) operate(ctx context.Context, verb check.Verb, order order) ([]string, error) {
	operator := relay.NewOperator(p.db.pool, p.db.schema)
	var act func(context.Context, relay.Action, ...outbox.ID) ([]relay.ActionResult, error)
	switch verb {
	case check.Redrive:
		act = operator.Redrive
	case check.Skip:
		act = operator.Skip
	case check.Free:
		act = operator.Release
	case check.Discard:
		act = operator.Discard
	case check.Redeliver, check.Reissue:
		return nil, fmt.Errorf("modeltest: there is no %s", verb)
	}
	results, err := act(ctx, relay.Action{ID: order.Action, Actor: order.Actor, Reason: order.Reason}, order.Events...)
	var lines []string
	for _, result := range results {
		lines = append(lines, resultLine(result.Event, string(result.Outcome), result.Was))
	}
	return lines, err
}

func resultLine(event outbox.ID, outcome, was string) string {
	return fmt.Sprintf("%s %s, was %q", event, outcome, was)
}
