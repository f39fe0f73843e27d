package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// meant hands on the events that a filter means, each once, however old, and those of which only a dead letter is left.
// Of ids alone also those that are not there.
func (o *Operator) meant(ctx context.Context, filter Filter, most int, take func([]outbox.ID) error) error {
	tooMany := fmt.Errorf("operator: erasure: %w", notUnderstoodError{
		fmt.Errorf("more than %d events meet this: erase them in parts, by a created: of each", most),
	})
	if filter.onlyIDs() {
		ids := slices.Clone(filter.IDs)
		slices.SortFunc(ids, func(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) })
		if ids = slices.Compact(ids); len(ids) > most {
			return tooMany
		}
		return take(ids)
	}
	err := filter.check()
	if filter.Reason != "" {
		err = errors.Join(err, errors.New("reason: it is for dead letters"))
	}
	if err != nil {
		return fmt.Errorf("operator: erasure: %w", notUnderstoodError{err})
	}
	seen := map[outbox.ID]bool{}
	add := func(events []outbox.ID) error {
		var found []outbox.ID
		for _, id := range events {
			if !seen[id] {
				seen[id] = true
				found = append(found, id)
			}
		}
		if len(seen) > most {
			return tooMany
		}
		return take(found)
	}
	find := o.meantEvents
	if len(filter.IDs) > 0 {
		find = o.meantNamed
	}
	err = find(ctx, filter, add)
	if err == nil && len(filter.notOfLetters()) == 0 {
		err = o.meantLetters(ctx, filter, add)
	}
	return err
}

// meantNamed finds those that are named by their ids and asked for more.
func (o *Operator) meantNamed(ctx context.Context, filter Filter, add func([]outbox.ID) error) error {
	for page := (Page{Limit: MaxEventPage}); ; {
		events, err := o.Events(ctx, filter, page)
		if err != nil {
			return err
		}
		var ids []outbox.ID
		for _, event := range events.Events {
			ids = append(ids, event.ID)
		}
		if err := add(ids); err != nil || events.Next == "" {
			return err
		}
		page.After = events.Next
	}
}

// meantEvents finds those that are in the table, as a job does. A list stops looking at some age; what shall be erased
// is looked for among all.
func (o *Operator) meantEvents(ctx context.Context, filter Filter, add func([]outbox.ID) error) error {
	var last int64
	err := o.look(ctx, "erasure", func(l *looking) error {
		filter = filter.settled(l.now)
		if filter.Topic != "" {
			narrowed := &search{looking: l, filter: filter}
			if err := narrowed.typesOfTopic(ctx); err != nil {
				return notUnderstoodError{err}
			}
			filter.Types = narrowed.filter.Types
		}
		return l.QueryRow(ctx, "SELECT last_value FROM "+l.table("outbox_events_seq_seq")).Scan(&last)
	})
	search := newJobSearch(o, JobSpec{Verb: VerbRedeliver, Filter: filter}) // which looks at all that there are
	for at := int64(0); err == nil && at < last; {
		var events []outbox.ID
		if events, at, err = search.next(ctx, at, last, MaxEventPage); err == nil {
			err = add(events)
		}
	}
	return err
}

// notOfLetters names the fields of a filter that dead letters cannot be asked for: how an event stood in the end.
func (f Filter) notOfLetters() (fields []string) {
	for _, field := range []struct {
		name string
		is   bool
	}{
		{"state", len(f.States) > 0},
		{"error", f.Error != ""},
		{"published", f.Published != (Period{})},
		{"attempts", f.Attempts.Set},
	} {
		if field.is {
			fields = append(fields, field.name)
		}
	}
	return fields
}

// meantLetters finds the events of which only dead letters are left, some letters at a time.
func (o *Operator) meantLetters(ctx context.Context, filter Filter, add func([]outbox.ID) error) error {
	for after := int64(0); ; {
		var last *int64
		var found []string
		err := o.look(ctx, "erasure", func(l *looking) error {
			filter = filter.settled(l.now)
			statement, args := lettersLeft(l, filter, after)
			err := l.QueryRow(ctx, statement, args...).Scan(&last, &found)
			if sqlstate.PermissionDenied(err) && len(filter.Data) > 0 {
				return ErrPayloads
			}
			return err //nolint:wrapcheck // look says what it was
		})
		if err != nil || last == nil {
			return err
		}
		ids := make([]outbox.ID, len(found))
		for i, text := range found {
			if ids[i], err = outbox.ParseID(text); err != nil {
				return fmt.Errorf("operator: erasure: %w", err)
			}
		}
		if err := add(ids); err != nil {
			return err
		}
		after = *last
	}
}

// lettersLeft is the statement that looks at the letters behind a number, with its parameters.
func lettersLeft(l *looking, f Filter, after int64) (statement string, args []any) {
	created := ends(f.Created.From, f.Created.To)
	var ids []string
	if len(f.IDs) > 0 {
		ids = texts(f.IDs)
	}
	s := &search{args: []any{
		after, mostLooked, ids, f.Types, f.AggregateType, f.AggregateID, f.Tenant, f.Namespace, f.Topic, created[0],
		created[1],
	}}
	content := ""
	if len(f.Data) > 0 {
		content = ", d.payload_json"
	}
	return l.sql("letters_left", "{content}", content, "{payload}", s.data("d", f.Data)), s.args
}
