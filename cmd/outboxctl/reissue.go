package main

import (
	"context"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

const reissueHint = "'outboxctl replay start --as reissue' makes new events of published and of discarded ones: by " +
	"their ids (--again where there is one already), or with state:discarded in a filter"

// reissued makes new events of old ones, by one of the operator's ways to do that.
func reissued(do func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, []outbox.ID, error)) act {
	return func(ctx context.Context, action operator.Action, events ...outbox.ID) (
		[]operator.Result, map[outbox.ID]outbox.ID, error,
	) {
		results, ids, err := do(ctx, action, events...)
		return results, reissuedAs(events, ids), err
	}
}

// reissuedAs is the new events by the old ones.
func reissuedAs(events, made []outbox.ID) map[outbox.ID]outbox.ID {
	as := map[outbox.ID]outbox.ID{}
	for i, id := range made {
		if id != (outbox.ID{}) {
			as[events[i]] = id
		}
	}
	return as
}

const againHelp = "also of an event that was issued again or edited before"

// hintedAgain adds to an error what there is to do where an event has a new one already.
func hintedAgain(err error, results []operator.Result, made map[outbox.ID]outbox.ID) error {
	for _, result := range results {
		if _, hasOne := made[result.Event]; hasOne && result.Outcome == operator.NotApplicable {
			return hinted(err, "--again makes another new event, which consumers handle as well")
		}
	}
	return err
}
