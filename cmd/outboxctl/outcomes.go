package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// outcomes are what an action came to, of events that were named by their ids.
type outcomes struct {
	verb    operator.Verb
	action  operator.Action
	results []operator.Result
	made    map[outbox.ID]outbox.ID // the new events, where the verb makes them, by the old ones
}

// verbEdit makes a new event of an old one, with other data. No job does that.
const verbEdit operator.Verb = "edit"

// report prints what came of each event, and fails if that was nothing.
func (o outcomes) report(ctx context.Context, out io.Writer, op *operator.Operator) error {
	erased := o.erased(ctx, op)
	counts := map[operator.Outcome]int{}
	for _, result := range o.results {
		counts[result.Outcome]++
		if err := say(out, "%s %s%s\n", result.Event, o.word(result.Outcome), o.about(result, erased)); err != nil {
			return err
		}
	}
	changed := counts[operator.Done] + counts[operator.DoneBefore]
	if changed > 0 { // also where others were left: whoever has to explain it needs the id
		if err := say(out, "%s\n", o.summary(changed)); err != nil {
			return err
		}
	}
	switch all := len(o.results); {
	case changed == all:
		return nil
	case counts[operator.NotFound] == all:
		return notFound("%s: %s", o.verb, noneThere(all))
	default:
		return fmt.Errorf("%s: %d of %s in no state for it, or not there", o.verb, all-changed,
			plural(all, "event is", "events are"))
	}
}

// noneThere says it of so many events that were named.
func noneThere(of int) string {
	if of == 1 {
		return "there is no such event"
	}
	return "none of these events is there"
}

// word is an outcome. A redelivery only asks for copies: a relay sends them.
func (o outcomes) word(outcome operator.Outcome) string {
	switch {
	case o.verb == operator.VerbRedeliver && outcome == operator.Done:
		return "asked for"
	case o.verb == operator.VerbRedeliver && outcome == operator.DoneBefore:
		return "asked for before"
	}
	return string(outcome)
}

func (o outcomes) summary(changed int) string {
	number := events(int64(changed))
	if changed < len(o.results) {
		number = fmt.Sprintf("%d of %s", changed, events(int64(len(o.results))))
	}
	if o.verb == operator.VerbRedeliver {
		return fmt.Sprintf("%s: %s, action %s; asked for: 'outboxctl replay status %[3]s' shows when a relay has sent that",
			o.verb, number, o.action.ID)
	}
	return fmt.Sprintf("%s: %s, action %s", o.verb, number, o.action.ID)
}

// about is in which state an event was, and why nothing was done where that does not say it.
func (o outcomes) about(result operator.Result, erased map[outbox.ID]bool) (text string) {
	if result.Was != "" {
		text = ", was " + result.Was
	}
	made, hasNew := o.made[result.Event]
	switch {
	case hasNew && result.Outcome == operator.NotApplicable: // by another action
		return text + ": it was issued again before, as " + made.String()
	case hasNew:
		return text + ": it is issued again as " + made.String()
	case result.Outcome != operator.NotApplicable:
		return text
	case erased[result.Event]:
		return text + ": it is erased, and nothing is left to send"
	case o.verb == operator.VerbSkip && result.Was == "dead":
		return text + ": it blocks no other event"
	case result.Was == "parked" && o.verb != operator.VerbRelease:
		return text + ": 'outboxctl release' has it tried again"
	}
	return text
}

// erased are those events that nothing was done to because nothing is left of them. Their states alone do not say it.
// What cannot be looked up is told without it.
func (o outcomes) erased(ctx context.Context, op *operator.Operator) map[outbox.ID]bool {
	var left []outbox.ID
	for _, result := range o.results {
		if _, hasNew := o.made[result.Event]; result.Outcome == operator.NotApplicable && !hasNew {
			left = append(left, result.Event)
		}
	}
	erased := map[outbox.ID]bool{}
	switch o.verb {
	case operator.VerbSkip, operator.VerbDiscard, operator.VerbRelease: // they send nothing
		return erased
	case operator.VerbRedrive, operator.VerbRedeliver, operator.VerbReissue:
	}
	for part := range slices.Chunk(left, operator.MaxEventPage) {
		page, err := op.Events(ctx, operator.Filter{IDs: part}, operator.Page{Limit: operator.MaxEventPage})
		if err != nil {
			break
		}
		for i := range page.Events {
			erased[page.Events[i].ID] = page.Events[i].Erased
		}
	}
	return erased
}

// ofAction names an action whose answer may be lost. What was not understood never began.
func ofAction(err error, id outbox.ID) error {
	if errors.Is(err, operator.ErrNotUnderstood) {
		return err
	}
	return fmt.Errorf("%w (action %s)", err, id)
}

// distinct are the ids without those that are there already.
func distinct(ids []outbox.ID) (once []outbox.ID) {
	seen := map[outbox.ID]bool{}
	for _, id := range ids {
		if !seen[id] {
			once = append(once, id)
		}
		seen[id] = true
	}
	return once
}
