package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// The bounds of a look at what people did.
const (
	// MaxActions is the most of a page.
	MaxActions    = 1_000
	usualActions  = 50
	actionsLooked = 10_000
)

// A LoggedAction is a line of the log of what people did. It is written in the transaction of what it tells of.
type LoggedAction struct {
	Number int64     `json:"number"`
	Action outbox.ID `json:"action"`
	Verb   string    `json:"verb"`
	// Event is what it was about; Target instead of it, where it was about no event: all, a topic, a type, requests.
	Event  *outbox.ID `json:"event,omitempty"`
	Target string     `json:"target,omitempty"`
	// Letter is the number of the dead letter that it resolved or skipped; 0: none.
	Letter int64 `json:"letter,omitempty"`
	// Actor is who decided, as the caller said; Role the database role that had logged in, as the server knows it.
	Actor  string    `json:"actor"`
	Role   string    `json:"role"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// An ActionFilter says which actions are wanted. Empty fields mean all.
type ActionFilter struct {
	Event             outbox.ID
	Actor, Verb, Role string
	Since, Until      time.Time
	// Limit is the most of the page. Defaults to 50; at most MaxActions.
	Limit int
	// After is the Next of the page before, with the same filter.
	After string
}

// An ActionPage is a part of the log, the newest first.
type ActionPage struct {
	Actions []LoggedAction `json:"actions"`
	// Next is the After of the next page; empty: there is none.
	Next string `json:"next,omitempty"`
}

// Actions reads the log of what people did, the newest first. A page looks at no more than 10,000 lines: where what is
// asked for is rare, it can be empty and have a next one. The grants of the viewer role are enough.
func (o *Operator) Actions(ctx context.Context, filter ActionFilter) (page ActionPage, err error) {
	below, err := filter.begin()
	if err = errors.Join(err, filter.check()); err != nil {
		return page, fmt.Errorf("operator: actions: %w", notUnderstoodError{err})
	}
	limit := filter.Limit
	if limit == 0 {
		limit = usualActions
	}
	err = o.look(ctx, "actions", func(l *looking) error {
		event := ""
		if filter.Event != (outbox.ID{}) {
			event = filter.Event.String()
		}
		rows, err := l.Query(ctx, l.sql("actions"), below, event, filter.Actor, filter.Verb, filter.Role,
			timeOrNil(filter.Since), timeOrNil(filter.Until), actionsLooked, limit)
		if err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		page, err = readActions(rows, limit)
		return err
	})
	return page, err
}

func readActions(rows pgx.Rows, limit int) (page ActionPage, err error) {
	var looked, last int64
	var number, letter *int64
	var action, verb, event, target, actor, role, reason *string
	var at *time.Time
	_, err = pgx.ForEachRow(rows, []any{
		&looked, &last, &number, &action, &verb, &event, &target, &letter, &actor, &role, &reason, &at,
	}, func() error {
		if number == nil { // it looked, and found none
			return nil
		}
		line := LoggedAction{
			Number: *number, Verb: *verb, Target: *target, Letter: *letter, Actor: *actor, Role: *role, Reason: *reason,
			At: at.UTC(),
		}
		var err error
		if line.Action, err = outbox.ParseID(*action); err != nil {
			return err
		}
		if *event != "" {
			id, err := outbox.ParseID(*event)
			if err != nil {
				return err
			}
			line.Event = &id
		}
		page.Actions = append(page.Actions, line)
		return nil
	})
	switch {
	case err != nil:
		return ActionPage{}, err //nolint:wrapcheck // look says what it was
	case len(page.Actions) == limit:
		page.Next = strconv.FormatInt(page.Actions[limit-1].Number, 10)
	case looked == actionsLooked:
		page.Next = strconv.FormatInt(last, 10)
	}
	return page, nil
}

func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// begin is the number below which the page begins.
func (f ActionFilter) begin() (int64, error) {
	if f.After == "" {
		return 1<<63 - 1, nil
	}
	number, err := strconv.ParseInt(f.After, 10, 64)
	if err != nil || number < 1 {
		return 0, noPageEnd(f.After)
	}
	return number, nil
}

// ActionVerbs are what the log tells of.
func ActionVerbs() []string {
	return []string{
		"redrive", "skip", "release", "discard", "reissue", "redeliver", "cancel", "erase", "pause", "resume", "limit",
		"fail", "look",
	}
}

func (f ActionFilter) check() error {
	var problems []error
	if verbs := ActionVerbs(); f.Verb != "" && !slices.Contains(verbs, f.Verb) {
		problems = append(problems, fmt.Errorf("there is no verb %.40q: it is one of %s", f.Verb, strings.Join(verbs, ", ")))
	}
	for _, text := range []string{f.Actor, f.Verb, f.Role} {
		if utf8.RuneCountInString(text) > longestName || !utf8.ValidString(text) ||
			strings.ContainsFunc(text, unicode.IsControl) {
			problems = append(problems, fmt.Errorf("%.40q is longer than %d characters, holds a control character or is "+
				"not UTF-8", text, longestName))
		}
	}
	if f.Limit < 0 || f.Limit > MaxActions {
		problems = append(problems, fmt.Errorf("the limit is %d, must be between 1 and %d", f.Limit, MaxActions))
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		problems = append(problems, errors.New("it ends before it begins"))
	}
	return errors.Join(problems...)
}
