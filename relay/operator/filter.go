package operator

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/internal/suggest"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The bounds of a filter's text. A person writes it, or a page's address has it.
const (
	longestFilter = 4096
	mostTerms     = 32
	mostValues    = 100
	deepestPath   = 16
)

// FilterHelp says how a filter is written, a line per field.
const FilterHelp = `type:order_created          the event type; several with commas
aggregate:order/4711        the aggregate, or aggregate:order for all of a type
tenant:acme                 the tenant
namespace:billing           the namespace
topic:orders                types that the relays send to this topic now
state:dead,parked           ready, retrying, parked, waiting, blocking, dead, published, discarded, held, open
reason:max_attempts         of a dead letter: why it died
error:"connection refused"  a piece of the last error, in upper or lower case
id:01997c1e-8f2a-...        the event; several with commas
created:>1h                 older than an hour; created:<2d within the last two days;
                            created:2026-01-31..2026-02-02, or one day of it, in UTC
published:<10m              the same for when it was published; a list has those made at most a day before
attempts:>3                 more than three; also <3 and 3
data.customer.id:4711       a value of the payload's data, for roles that may read payloads`

// A Filter says which events are meant: those that meet all of it. The zero value is all events. [ParseFilter] makes
// one from what a person writes.
type Filter struct {
	IDs                        []outbox.ID
	Types                      []string
	AggregateType, AggregateID string
	Tenant, Namespace, Topic   string
	States                     []string // words of docs/reference/schema.md
	Reason                     string   // of a dead letter, as DeadLetterFilter has it
	Error                      string   // a piece of the last error
	Created, Published         Period
	Attempts                   AttemptRange
	Data                       []DataValue

	// since bounds a search that no index answers.
	since time.Time
}

// A Period is a piece of time: not before From and before To; younger than Within and older than Beyond, by the
// database's clock. What is zero does not count.
type Period struct {
	From, To       time.Time
	Within, Beyond time.Duration
}

// An AttemptRange is a range of numbers, both ends included. Set tells whether it counts.
type AttemptRange struct {
	Set         bool
	Least, Most int
}

// A DataValue is a value at a path within the payload's data.
type DataValue struct {
	Path  []string
	Value string
}

// filterFields are the fields, in the order of help. Each reads its value.
var filterFields = []struct {
	name string
	read func(f *Filter, value string) error
}{
	{"type", func(f *Filter, v string) (err error) { f.Types, err = values(v); return err }},
	{"aggregate", func(f *Filter, v string) error {
		var split bool
		f.AggregateType, f.AggregateID, split = strings.Cut(v, "/")
		if f.AggregateType == "" || split && f.AggregateID == "" {
			return errors.New("write it as TYPE/ID or TYPE")
		}
		return nil
	}},
	{"tenant", func(f *Filter, v string) error { f.Tenant = v; return nil }},
	{"namespace", func(f *Filter, v string) error { f.Namespace = v; return nil }},
	{"topic", func(f *Filter, v string) error { f.Topic = v; return nil }},
	{"state", func(f *Filter, v string) (err error) { f.States, err = stateWords(v); return err }},
	{"reason", func(f *Filter, v string) error {
		if f.Reason = v; !slices.Contains(reasons, v) {
			return errors.New("an event dies of " + strings.Join(reasons, ", "))
		}
		return nil
	}},
	{"error", func(f *Filter, v string) error { f.Error = v; return nil }},
	{"id", func(f *Filter, v string) (err error) { f.IDs, err = idList(v); return err }},
	{"created", func(f *Filter, v string) (err error) { f.Created, err = parsePeriod(v); return err }},
	{"published", func(f *Filter, v string) (err error) { f.Published, err = parsePeriod(v); return err }},
	{"attempts", func(f *Filter, v string) (err error) { f.Attempts, err = parseCount(v); return err }},
}

// FilterFields are the names of the fields that a filter has. Those of data have a path instead.
func FilterFields() (names []string) {
	for _, field := range filterFields {
		names = append(names, field.name)
	}
	return names
}

// FilterStates are the words for state: in a filter.
func FilterStates() []string {
	return []string{
		"ready", "retrying", "parked", "waiting", "blocking", "dead", "published", "discarded", "held", "open",
	}
}

// ParseFilter reads a filter: terms of field:value with spaces between them, as [FilterHelp] has them. A value with
// spaces stands in double quotes, in which \" is a quote. An id alone is its event. All that is wrong is told at once.
func ParseFilter(text string) (Filter, error) { return parseFilter(text, longestFilter) }

// ParsePlanned reads the filter of a plan or a job, which may be longer: a topic has become a list of types there.
func ParsePlanned(text string) (Filter, error) { return parseFilter(text, longestStored) }

// parseFilter is the same for texts of another length.
func parseFilter(text string, longest int) (f Filter, err error) {
	if len(text) > longest {
		return f, fmt.Errorf("filter: it has %d bytes, the limit is %d", len(text), longest)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return f, errors.New("filter: it holds a control character or is not UTF-8")
	}
	terms, err := splitTerms(text)
	if err != nil {
		return f, fmt.Errorf("filter: %w", err)
	}
	if len(terms) > mostTerms {
		return f, fmt.Errorf("filter: %d terms, the limit is %d", len(terms), mostTerms)
	}
	var problems []error
	seen := map[string]bool{}
	for _, term := range terms {
		if err := readTerm(&f, term, seen); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return Filter{}, fmt.Errorf("filter: %w", errors.Join(problems...))
	}
	return f, nil
}

// readTerm takes in one term.
func readTerm(f *Filter, term string, seen map[string]bool) error {
	field, value, named := strings.Cut(term, ":")
	if !named {
		if id, err := outbox.ParseID(term); err == nil {
			f.IDs = append(f.IDs, id)
			return nil
		}
		return fmt.Errorf("%.80q names no field: write field:value; the fields are %s", term, fieldNames())
	}
	switch {
	case value == "":
		return fmt.Errorf("%.80s: has no value", field)
	case utf8.RuneCountInString(value) > longestName && field != "id" && field != "type": // lists, bounded by their number
		return fmt.Errorf("%.80s: has more than %d characters", field, longestName)
	case strings.HasPrefix(field, "data."):
		path := strings.Split(field, ".")[1:]
		if len(path) > deepestPath || slices.Contains(path, "") {
			return fmt.Errorf("%.80s: write the path as data.name.name, at most %d names", field, deepestPath)
		}
		f.Data = append(f.Data, DataValue{Path: path, Value: value})
		return nil
	case seen[field]:
		return fmt.Errorf("%s: is there twice; several values of type, state and id have commas between them", field)
	}
	for _, known := range filterFields {
		if known.name == field {
			seen[field] = true
			if err := known.read(f, value); err != nil {
				return fmt.Errorf("%s: %.80q: %w", field, value, err)
			}
			return nil
		}
	}
	return fmt.Errorf("there is no field %.80q%s; the fields are %s", field, didYouMean(field), fieldNames())
}

func fieldNames() string { return strings.Join(fieldList(), ", ") }

func fieldList() []string {
	var names []string
	for _, field := range filterFields {
		names = append(names, field.name)
	}
	return append(names, "data.PATH")
}

// otherWords are what people write for a field.
var otherWords = map[string]string{
	"topics": "topic", "status": "state", "event": "id", "event_id": "id", "event_type": "type", "payload": "data.PATH",
	"age": "created", "order": "aggregate",
}

// didYouMean names the field that somebody may have meant.
func didYouMean(wrong string) string {
	best := cmp.Or(otherWords[strings.ToLower(wrong)], suggest.Nearest(wrong, fieldList()))
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", best)
}

// splitTerms splits at spaces outside of quotes, and takes the quotes away.
func splitTerms(text string) ([]string, error) {
	var terms []string
	var term strings.Builder
	quoted, escaped, begun := false, false, false
	for _, r := range text {
		switch {
		case escaped:
			term.WriteRune(r)
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted, begun = !quoted, true
		case !quoted && unicode.IsSpace(r):
			if begun {
				terms = append(terms, term.String())
			}
			term.Reset()
			begun = false
		default:
			term.WriteRune(r)
			begun = true
		}
	}
	if quoted || escaped {
		return nil, errors.New(`a quote is not closed`)
	}
	if begun {
		terms = append(terms, term.String())
	}
	return terms, nil
}

// values splits at commas.
func values(text string) ([]string, error) {
	list := strings.Split(text, ",")
	if len(list) > mostValues {
		return nil, fmt.Errorf("%d values, the limit is %d", len(list), mostValues)
	}
	if slices.Contains(list, "") {
		return nil, errors.New("a value between the commas is missing")
	}
	return list, nil
}

func idList(text string) ([]outbox.ID, error) {
	list, err := values(text)
	if err != nil {
		return nil, err
	}
	ids := make([]outbox.ID, len(list))
	for i, one := range list {
		if ids[i], err = outbox.ParseID(one); err != nil {
			return nil, errors.New("an id is a UUID with hyphens, as 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e")
		}
	}
	return ids, nil
}

// stateAliases are words that people use, among them those of outbox_status, and the states that they mean.
var stateAliases = map[string][]state.State{
	"pending": {state.Ready}, "processing": {state.Ready}, "blocked": {state.Waiting},
	"blocking": {state.DeadBlocking}, "dead": {state.DeadBlocking, state.Dead},
	"held": {state.Retrying, state.Parked, state.Waiting, state.DeadBlocking},
	"open": {state.Ready, state.Retrying, state.Parked, state.Waiting, state.DeadBlocking, state.Dead},
}

func stateWords(text string) ([]string, error) {
	list, err := values(text)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, one := range list {
		found, known := stateAliases[one]
		for _, s := range state.All() {
			if !known && s.String() == one {
				found = append(found, s)
			}
		}
		if len(found) == 0 {
			return nil, errors.New("there is no such state: use " + strings.Join(FilterStates(), ", "))
		}
		for _, s := range found {
			if !slices.Contains(words, s.String()) {
				words = append(words, s.String())
			}
		}
	}
	return words, nil
}

// stateNumbers are the states' numbers; nil for all.
func (f Filter) stateNumbers() []int16 {
	var numbers []int16
	for _, s := range state.All() {
		if slices.Contains(f.States, s.String()) {
			numbers = append(numbers, int16(s))
		}
	}
	return numbers
}

func parseCount(text string) (AttemptRange, error) {
	count := AttemptRange{Set: true, Most: 1<<31 - 1}
	sign := ""
	if text[0] == '>' || text[0] == '<' {
		sign, text = text[:1], text[1:]
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return AttemptRange{}, errors.New("write a number, as 3, >3 or <3")
	}
	switch sign {
	case ">":
		if n == 1<<31-1 {
			return AttemptRange{}, errors.New("no event has so many attempts")
		}
		count.Least = int(n) + 1
	case "<":
		count.Most = int(n) - 1
	default:
		count.Least, count.Most = int(n), int(n)
	}
	return count, nil
}

const periodForms = "write it as >1h (older than an hour), <2d (within the last two days), 2026-01-31 (that day), or " +
	"2026-01-31..2026-02-02 with days or times like 2026-01-31T15:04:05Z"

func parsePeriod(text string) (p Period, err error) {
	switch {
	case text[0] == '>':
		p.Beyond, err = parseAge(text[1:])
		return p, err
	case text[0] == '<':
		p.Within, err = parseAge(text[1:])
		return p, err
	}
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		if p.From, err = time.Parse(time.DateOnly, text); err != nil {
			return Period{}, errors.New(periodForms)
		}
		p.To = p.From.AddDate(0, 0, 1)
		return p, nil
	}
	if from == "" && to == "" {
		return Period{}, errors.New(periodForms)
	}
	if p.From, err = parseMoment(from); err != nil {
		return Period{}, err
	}
	if p.To, err = parseMoment(to); err != nil {
		return Period{}, err
	}
	if !p.To.IsZero() && !p.From.Before(p.To) {
		return Period{}, errors.New("its end is not after its begin")
	}
	return p, nil
}

func parseMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil // as it is read again, where a job has written it down
		}
	}
	return time.Time{}, errors.New(periodForms)
}

// longestAge is more than anybody can mean.
const longestAge = 100 * 366 * 24 * time.Hour

// parseAge reads a duration, which may have days and weeks: 90s, 1h30m, 2d, 3w.
func parseAge(text string) (time.Duration, error) {
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var age time.Duration
	if text != "" && unit[text[len(text)-1]] > 0 {
		n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
		if err != nil || n < 0 || time.Duration(n) > longestAge/unit[text[len(text)-1]] {
			return 0, errors.New(periodForms)
		}
		age = time.Duration(n) * unit[text[len(text)-1]]
	} else {
		var err error
		if age, err = time.ParseDuration(text); err != nil {
			return 0, errors.New(periodForms)
		}
	}
	if age <= 0 || age > longestAge {
		return 0, errors.New(periodForms)
	}
	return age, nil
}

// at gives a period by its ends, once it is known what time it is. Zero: none.
func (p Period) at(now time.Time) (from, to time.Time) {
	from, to = p.From, p.To
	if p.Within > 0 && now.Add(-p.Within).After(from) {
		from = now.Add(-p.Within)
	}
	if p.Beyond > 0 && (to.IsZero() || now.Add(-p.Beyond).Before(to)) {
		to = now.Add(-p.Beyond)
	}
	return from, to
}

// settled is the filter with its periods by their ends: it means the same whenever it is asked.
func (f Filter) settled(now time.Time) Filter {
	for _, period := range []*Period{&f.Created, &f.Published} {
		from, to := period.at(now.UTC())
		*period = Period{From: from, To: to}
	}
	return f
}

// onlyIDs tells whether a filter names events and asks for nothing else of them.
func (f Filter) onlyIDs() bool {
	named := len(f.IDs) > 0
	f.IDs = nil
	return named && reflect.ValueOf(f).IsZero()
}

// check holds a filter that was not parsed to the same bounds.
func (f Filter) check() error {
	var problems []error
	for _, text := range append([]string{
		f.AggregateType, f.AggregateID, f.Tenant, f.Namespace, f.Topic, f.Error,
	}, f.Types...) {
		if utf8.RuneCountInString(text) > longestName || !utf8.ValidString(text) ||
			strings.ContainsFunc(text, unicode.IsControl) {
			problems = append(problems, fmt.Errorf("%.40q is longer than %d characters, holds a control character or is "+
				"not UTF-8", text, longestName))
		}
	}
	if len(f.IDs) > MaxEvents || len(f.Types) > mostValues || len(f.Data) > mostTerms || len(f.States) > mostValues {
		problems = append(problems, errors.New("it has too many values"))
	}
	if len(f.States) > 0 && len(f.stateNumbers()) != len(f.States) {
		problems = append(problems, fmt.Errorf("%.200q has a word that is no state", f.States))
	}
	if f.AggregateID != "" && f.AggregateType == "" {
		problems = append(problems, errors.New("an AggregateID needs its AggregateType"))
	}
	return errors.Join(problems...)
}
