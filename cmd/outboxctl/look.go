package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// look connects and hands out an operator who only looks: the viewer role is enough.
func (c *rootCommand) look(ctx context.Context, work func(*operator.Operator) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return c.looked(work(operator.New(conn, c.schema)))
}

// looked says what to do about an error of somebody who only looks.
func (c *rootCommand) looked(err error) error {
	if known := (problem{}); errors.Is(err, operator.ErrPayloads) && !errors.As(err, &known) {
		// The operator package says it as well, without the schema.
		text, _, _ := strings.Cut(err.Error(), ": GRANT SELECT ON outbox_events")
		return problem{
			code: "permission_denied", exit: exitNotLetIn, err: reworded{text, err},
			hint: "GRANT SELECT ON " + c.schema + ".outbox_events TO this role, or ask without them",
		}
	}
	return c.hint(err, "viewer")
}

// notef tells something beside the result that the result does not say: lines of JSON have no place for it.
func (c *rootCommand) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(c.warn, format+"\n", args...)
}

// filterOf reads the filter of a command line. The shell takes quotes away: an argument with spaces is one term, unless
// all of its words are terms.
func filterOf(args []string) (operator.Filter, error) {
	var terms []string
	for _, arg := range args {
		words := strings.Fields(arg)
		several := true
		for _, word := range words {
			several = several && strings.Contains(word, ":")
		}
		field, value, named := strings.Cut(arg, ":")
		if named && len(words) > 1 && !several && !strings.Contains(arg, `"`) {
			arg = field + `:"` + strings.ReplaceAll(value, `\`, `\\`) + `"`
		}
		terms = append(terms, arg)
	}
	filter, err := operator.ParseFilter(strings.Join(terms, " "))
	if err != nil {
		return filter, usageError{err.Error()}
	}
	return filter, nil
}

// oneEvent reads the id of an event, the only argument.
func oneEvent(id *outbox.ID) func(args []string) error {
	return func(args []string) (err error) {
		if len(args) != 1 {
			return usageError{"name one event by its id"}
		}
		if *id, err = outbox.ParseID(args[0]); err != nil {
			return usageError{fmt.Sprintf("%.80q is no id of an event", args[0])}
		}
		return nil
	}
}

// filterHelp is the part of a command's help about filters.
var filterHelp = "A filter is terms of field:value, all of which must hold:\n\n  " +
	strings.ReplaceAll(operator.FilterHelp, "\n", "\n  ") +
	"\n\nShells give < and > a meaning of their own: put such a term in quotes, as in 'created:<2d'."

// ago is how long ago something was, or how soon it will be: "3m ago", "in 20s".
func ago(at, now time.Time) string {
	if at.After(now) {
		return "in " + short(at.Sub(now))
	}
	return short(now.Sub(at)) + " ago"
}

// agoOf is ago for what may not have happened.
func agoOf(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	return ago(*at, now)
}

// short is a length of time in its largest unit.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(0, d.Milliseconds()))
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// styleOf is how a state looks.
func styleOf(state string) present.Style {
	switch state {
	case "published":
		return present.Good
	case "dead", "dead and blocking":
		return present.Bad
	case "retrying", "parked", "waiting":
		return present.Warn
	case "discarded":
		return present.Faint
	default:
		return present.Plain
	}
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// plural counts something.
func plural(count int, one, many string) string {
	if count == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", count, many)
}
