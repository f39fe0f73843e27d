package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// eventList is what the screen of events has.
type eventList struct {
	Filter string
	Page   operator.EventPage
	States []chip
	Words  []string
	Help   []helpLine
	// Looked says how far back was looked, where no index answers the filter.
	Looked string
	Live   bool
	Most   int
}

// chip is a filter that is one click away.
type chip struct {
	Name, Filter string
	Here         bool
}

type helpLine struct{ Term, Means string }

func (q *request) events() error {
	text := q.text("q")
	filter, err := q.filter(text)
	if err != nil {
		return err
	}
	limit, err := q.number("limit", 50, 1, mostPage)
	if err != nil {
		return err
	}
	found, err := q.outbox.op.Events(q.Context(), filter, operator.Page{Limit: int(limit), After: q.text("after")})
	if err != nil {
		return err
	}
	words, err := q.words()
	if err != nil {
		return err
	}
	list := &eventList{
		Filter: text, Page: found, Words: words, Help: filterHelp(), States: stateChips(filter), Live: q.text("after") == "",
		Looked: looked(found), Most: mostExport,
	}
	refresh := 0
	if list.Live {
		refresh = 3
	}
	return q.ok("events", "Events", refresh, list)
}

// looked says where a page was looked for.
func looked(found operator.EventPage) string {
	w := found.Window
	switch {
	case !w.Complete && found.Next == "" && w.Since != nil:
		return "Only events that were made since " + stamp(*w.Since) + " were looked at."
	case w.Complete && found.Next == "":
		return "These are all."
	case w.By == "newest" && w.Since != nil:
		return "No index answers this filter: the newest " + number(w.Looked) + " events were looked at, back to " +
			stamp(*w.Since) + "."
	default:
		return "The newest come first; there are more."
	}
}

// stateChips are the states, each with the filter that is shown but for its state.
func stateChips(filter operator.Filter) []chip {
	now := filter.States
	filter.States = nil
	others := filter.String()
	chips := []chip{{"all", others, len(now) == 0}}
	for _, state := range operator.FilterStates() {
		only, err := operator.ParseFilter(strings.TrimSpace(others + " state:" + state))
		chips = append(chips, chip{state, only.String(), err == nil && slices.Equal(only.States, now)})
	}
	return chips
}

// words are what a filter may be completed with: fields, states, and the types and topics that relays know.
func (q *request) words() (words []string, err error) {
	for _, field := range operator.FilterFields() {
		words = append(words, field+":")
	}
	for _, state := range operator.FilterStates() {
		words = append(words, "state:"+state)
	}
	if len(q.user.Tenants) > 0 { // what others have is not theirs to know
		return words, nil
	}
	topics, err := q.outbox.topics.get(q.Context(), "", q.outbox.op.Topics)
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		words = append(words, term("topic", topic.Name))
		for _, t := range topic.Types {
			words = append(words, term("type", t.Name))
		}
	}
	return words[:min(len(words), 500)], nil
}

// term writes one term of a filter.
func term(field, value string) string {
	if value == "" {
		return ""
	}
	if strings.ContainsAny(value, " \"\t,") {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return field + ":" + value
}

func filterHelp() (lines []helpLine) {
	for line := range strings.Lines(operator.FilterHelp) {
		// A term stands before two spaces; what goes on from the line before has none.
		t, means, ok := strings.Cut(strings.TrimRight(line, "\n"), "  ")
		if ok && strings.TrimSpace(t) != "" {
			lines = append(lines, helpLine{t, strings.TrimSpace(means)})
			continue
		}
		if t, means, ok := strings.Cut(strings.TrimSpace(line), " "); ok && len(lines) > 0 {
			lines = append(lines, helpLine{t, means})
		}
	}
	return lines
}

// longestExport is for how long a file is read: where no index helps all events would be looked through.
const longestExport = 8 * time.Second

// pages reads all pages of a filter up to the most, and hands each to write. more: there may be more than those.
func (q *request) pages(ctx context.Context, filter operator.Filter, most int,
	write func([]operator.Event) error,
) (more bool, err error) {
	page := operator.Page{Limit: operator.MaxEventPage}
	for left, begun := most, time.Now(); left > 0 && time.Since(begun) < longestExport; {
		page.Limit = min(left, operator.MaxEventPage)
		found, err := q.outbox.op.Events(ctx, filter, page)
		if err != nil {
			return false, err
		}
		if err := write(found.Events); err != nil {
			return false, err
		}
		left -= len(found.Events)
		if page.After = found.Next; page.After == "" {
			return false, nil
		}
	}
	return true, nil
}
