package modeltest

import (
	"context"
	"fmt"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// operate does a verb with the functions that people have.
func (p *postgres) operate(ctx context.Context, verb check.Verb, order order) ([]string, error) {
	op := operator.New(p.db.pool, p.db.schema)
	var act func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error)
	switch verb {
	case check.Redrive:
		act = op.Redrive
	case check.Skip:
		act = op.Skip
	case check.Free:
		act = op.Release
	case check.Discard:
		act = op.Discard
	case check.Redeliver, check.Reissue:
		return nil, fmt.Errorf("modeltest: there is no %s", verb)
	}
	results, err := act(ctx, order.action(), order.Events...)
	var lines []string
	for _, result := range results {
		lines = append(lines, resultLine(result.Event, string(result.Outcome), result.Was))
	}
	return lines, err
}

func (p *postgres) pause(ctx context.Context, scope core.Scope, name string, order order) (string, error) {
	outcome, err := operator.New(p.db.pool, p.db.schema).Pause(ctx, order.action(), operator.Scope{
		Kind: string(scope), Name: name,
	})
	return string(outcome), err
}

func (p *postgres) resume(ctx context.Context, scope core.Scope, name string, order order) (string, error) {
	outcome, err := operator.New(p.db.pool, p.db.schema).Resume(ctx, order.action(), operator.Scope{
		Kind: string(scope), Name: name,
	})
	return string(outcome), err
}

func (p *postgres) limit(ctx context.Context, topic string, rate float64, order order) (string, error) {
	op := operator.New(p.db.pool, p.db.schema)
	if rate == 0 {
		outcome, err := op.Unlimit(ctx, order.action(), topic)
		return string(outcome), err
	}
	outcome, err := op.Limit(ctx, order.action(), topic, rate)
	return string(outcome), err
}

func (p *postgres) redeliver(ctx context.Context, asked redelivery) ([]string, error) {
	how := operator.Redelivery{Topic: asked.topic}
	if asked.slow {
		how.Rate = operator.MinRate
	}
	results, err := operator.New(p.db.pool, p.db.schema).Redeliver(ctx, asked.action(), how, asked.Events...)
	var lines []string
	for _, result := range results {
		lines = append(lines, resultLine(result.Event, string(result.Outcome), result.Was))
	}
	return lines, err
}

func (p *postgres) cancel(ctx context.Context, canceling cancellation) ([]string, error) {
	canceled, left, err := operator.New(p.db.pool, p.db.schema).Cancel(ctx, canceling.action(), canceling.of)
	return []string{fmt.Sprintf("canceled %d left %d", canceled, left)}, err
}

func (o *order) action() operator.Action {
	return operator.Action{ID: o.Action, Actor: o.Actor, Reason: o.Reason}
}

func resultLine(event outbox.ID, outcome, was string) string {
	return fmt.Sprintf("%s %s, was %q", event, outcome, was)
}
