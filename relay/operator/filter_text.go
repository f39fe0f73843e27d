package operator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// String writes the filter as [ParseFilter] reads it.
func (f Filter) String() string {
	var terms []string
	add := func(field, value string) {
		if value != "" {
			terms = append(terms, quoteTerm(field+":"+value))
		}
	}
	ids := texts(f.IDs)
	add("id", strings.Join(ids, ","))
	add("type", strings.Join(f.Types, ","))
	aggregate := f.AggregateType
	if f.AggregateID != "" {
		aggregate += "/" + f.AggregateID
	}
	add("aggregate", aggregate)
	add("tenant", f.Tenant)
	add("namespace", f.Namespace)
	add("topic", f.Topic)
	add("state", strings.Join(f.stateTexts(), ","))
	add("reason", f.Reason)
	add("error", f.Error)
	add("created", f.Created.text())
	add("published", f.Published.text())
	add("attempts", f.Attempts.text())
	for _, value := range f.Data {
		add(strings.Join(append([]string{"data"}, value.Path...), "."), value.Value)
	}
	return strings.Join(terms, " ")
}

// quoteTerm puts a term into quotes where it would be read otherwise.
func quoteTerm(term string) string {
	if !strings.ContainsAny(term, `"\`) && !strings.ContainsFunc(term, unicode.IsSpace) {
		return term
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term) + `"`
}

// stateTexts are the words of a filter for the states: "dead" is both kinds of dead.
func (f Filter) stateTexts() []string {
	words := slices.Clone(f.States)
	blocking := slices.Index(words, state.DeadBlocking.String())
	switch {
	case blocking < 0:
	case slices.Contains(words, state.Dead.String()):
		words = slices.Delete(words, blocking, blocking+1)
	default:
		words[blocking] = "blocking"
	}
	return words
}

func (p Period) text() string {
	switch {
	case p.Within > 0:
		return "<" + p.Within.String()
	case p.Beyond > 0:
		return ">" + p.Beyond.String()
	case p.From.IsZero() && p.To.IsZero():
		return ""
	}
	moment := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.UTC().Format(time.RFC3339Nano)
	}
	return moment(p.From) + ".." + moment(p.To)
}

func (a AttemptRange) text() string {
	switch {
	case !a.Set:
		return ""
	case a.Least == a.Most:
		return strconv.Itoa(a.Least)
	case a.Least > 0:
		return fmt.Sprintf(">%d", a.Least-1)
	}
	return fmt.Sprintf("<%d", a.Most+1)
}
