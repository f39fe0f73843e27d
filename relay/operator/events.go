package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// The bounds of a look for events.
const (
	// MaxEventPage is the most events of a page, MaxEventPageWithPayload where payloads are asked for: one can have 9
	// MiB.
	MaxEventPage            = 1_000
	MaxEventPageWithPayload = 100
	usualEventPage          = 50
	// usualWindow is how many of the newest events a search looks at that no index answers. Each costs some
	// microseconds.
	usualWindow = 50_000
	// windowOfPayloads is the same for one that reads payloads.
	windowOfPayloads = 5_000
	// mostGathered is how many events are gathered before they are put in order: of an aggregate, or held.
	mostGathered = 10_000
	// idSlack is how far the time in an event's id may be from when its transaction began: clocks differ, and a
	// transaction may be open for a while before the event is made.
	idSlack = time.Hour
)

// An Event is where one event stands. Payload, Headers and DedupeKey are there only where they were asked for.
type Event struct {
	ID            outbox.ID `json:"id"`
	Seq           int64     `json:"seq"`
	Lane          int       `json:"lane"`
	Namespace     string    `json:"namespace"`
	Type          string    `json:"type"`
	AggregateType string    `json:"aggregateType"`
	AggregateID   string    `json:"aggregateId"`
	Tenant        string    `json:"tenant,omitempty"`
	// Topic is where it goes, as the relays that are there know it; of a dead event that of its dead letter. Empty: none
	// of them knows the type, or the event is published or discarded: where it went is not written down.
	Topic string `json:"topic,omitempty"`
	// State is a word of docs/reference/schema.md: ready, retrying, parked, waiting, dead and blocking, dead, published
	// or discarded.
	State       string     `json:"state"`
	CreatedAt   time.Time  `json:"createdAt"`
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	// HeldSince is since when it is held as State says, DueAt when a retry is due.
	HeldSince *time.Time `json:"heldSince,omitempty"`
	DueAt     *time.Time `json:"dueAt,omitempty"`
	Attempts  int        `json:"attempts"`
	LastError string     `json:"lastError,omitempty"`
	// Erased tells that hashes stand in the place of payload and headers: see [Operator.Erase].
	Erased bool `json:"erased,omitempty"`

	Payload   json.RawMessage `json:"payload,omitempty"`
	Headers   json.RawMessage `json:"headers,omitempty"`
	DedupeKey string          `json:"dedupeKey,omitempty"`
}

// A Page is which part of the answer is wanted.
type Page struct {
	// Limit is the most events. Defaults to 50; at most MaxEventPage, or MaxEventPageWithPayload.
	Limit int
	// After is the Next of the page before, with the same filter. Empty: from the newest on.
	After string
	// Payloads asks for Payload, Headers and DedupeKey as well. The roles viewer and operator may not read them.
	Payloads bool
}

// An EventPage is a part of the events that a filter asks for, the newest first.
type EventPage struct {
	Events []Event `json:"events"`
	// Next is the After of the next page; empty: there is none.
	Next   string `json:"next,omitempty"`
	Window Window `json:"window"`

	at time.Time // of the look, by the database's clock
}

// A Window says what was looked at for a page. What no index answers is looked for in a bounded number of events.
type Window struct {
	// By is how they were found: id, aggregate, held (the tables of held and dead events), type (the optional index), or
	// newest: no index answers the filter, and events were looked through from the newest on.
	By string `json:"by"`
	// Looked is how many events were looked at for this page, Since the time in the id of the oldest of them.
	Looked int        `json:"looked"`
	Since  *time.Time `json:"since,omitempty"`
	// Complete tells that nothing older is left to look at.
	Complete bool `json:"complete"`
}

// Events reads events, the newest first, by the time in their ids; by type, where that has an index, by number. It
// changes nothing, and the grants of the viewer role are enough unless payloads are asked for.
func (o *Operator) Events(ctx context.Context, filter Filter, page Page) (EventPage, error) {
	var found EventPage
	err := errors.Join(filter.check(), page.check())
	if filter.Reason != "" {
		err = errors.Join(err, errors.New("reason: it is for dead letters"))
	}
	if err != nil {
		return found, fmt.Errorf("operator: events: %w", notUnderstoodError{err})
	}
	err = o.look(ctx, "events", func(l *looking) (err error) {
		search, err := newSearch(ctx, l, filter, page)
		if err != nil {
			return err
		}
		found, err = search.run(ctx)
		found.at = l.now
		if sqlstate.PermissionDenied(err) && search.readsPayloads() {
			return ErrPayloads
		}
		return err
	})
	return found, err
}

// ErrPayloads says that the role may not read what was asked for, and who may.
var ErrPayloads = errors.New("this role may not read payloads, headers and dedupe keys: GRANT SELECT ON " +
	"outbox_events TO it, or ask without them")

// ErrNotUnderstood is what errors are that say what is wrong with a question, whatever is in the outbox.
var ErrNotUnderstood = errors.New("not understood")

// notUnderstoodError makes an error one of those. Its words stay.
type notUnderstoodError struct{ error }

func (notUnderstoodError) Is(target error) bool { return target == ErrNotUnderstood }
func (n notUnderstoodError) Unwrap() error      { return n.error }

// notUnderstood makes an error one of those, if there is one.
func notUnderstood(err error) error {
	if err == nil {
		return nil
	}
	return notUnderstoodError{err}
}

func noPageEnd(after string) error {
	return notUnderstoodError{fmt.Errorf("%.80q is no place at which a page ended", after)}
}

func (p Page) check() error {
	if p.Limit < 0 || p.Limit > p.most() {
		return fmt.Errorf("the limit is %d, must be between 1 and %d", p.Limit, p.most())
	}
	return nil
}

func (p Page) most() int {
	if p.Payloads {
		return MaxEventPageWithPayload
	}
	return MaxEventPage
}

// search is one look for a page.
type search struct {
	*looking
	filter Filter
	page   Page
	by     string
	kinds  []int16 // of held events, and 5 for dead ones
	most   int     // how many events to look at
	args   []any
	// Where it begins and ends: ids, or the number for the look by type.
	least, below outbox.ID
	// narrowed tells that older ones than least may be meant as well.
	narrowed bool
	belowSeq int64
	// above and upto are the numbers between which a job looks, lastAt when what it means had died or was published.
	above, upto int64
	lastAt      time.Time
}

func newSearch(ctx context.Context, l *looking, filter Filter, page Page) (*search, error) {
	s := &search{looking: l, filter: filter, page: page, below: idtime.Last, belowSeq: 1<<63 - 1, most: l.window}
	if s.page.Limit == 0 {
		s.page.Limit = usualEventPage
	}
	if len(filter.Data) > 0 {
		s.most = min(s.most, windowOfPayloads)
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if filter.Topic != "" {
		if err := s.typesOfTopic(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.choose(ctx)
}

// begin reads where the page begins, and bounds the ids by the time that is asked for.
func (s *search) begin() error {
	switch kind, place, _ := strings.Cut(s.page.After, "."); {
	case s.page.After == "":
	case kind == "id":
		id, err := outbox.ParseID(place)
		if err != nil {
			return noPageEnd(s.page.After)
		}
		s.below = id
	case kind == "seq":
		seq, err := strconv.ParseInt(place, 10, 64)
		if err != nil || seq < 1 {
			return noPageEnd(s.page.After)
		}
		s.belowSeq = seq
	default:
		return noPageEnd(s.page.After)
	}
	from, to := s.filter.Created.at(s.now)
	if published, _ := s.filter.Published.at(s.now); published.After(from) && s.filter.Created == (Period{}) {
		// What was published then was made before, mostly not long before. What waited for longer than a day is not found:
		// the window says how far back it looked, and that older ones are left.
		from, s.narrowed = published.Add(-24*time.Hour), true
	}
	if _, published := s.filter.Published.at(s.now); !published.IsZero() && (to.IsZero() || published.Before(to)) {
		to = published
	}
	if !from.IsZero() {
		s.least = idtime.Least(from.Add(-idSlack))
	}
	if bound := idtime.Least(s.filter.since); !s.filter.since.IsZero() && slices.Compare(bound[:], s.least[:]) > 0 {
		s.least = bound
	}
	if !to.IsZero() {
		if end := idtime.Least(to.Add(idSlack)); slices.Compare(end[:], s.below[:]) < 0 {
			s.below = end
		}
	}
	return nil
}

// noTypes is what no event has.
var noTypes = []string{""}

// typesOfTopic narrows the filter to the types of its topic.
func (s *search) typesOfTopic(ctx context.Context) error {
	topics, err := s.topics(ctx, nil)
	if err != nil {
		return err
	}
	var types, known []string
	for eventType, topic := range topics {
		if topic == s.filter.Topic && (len(s.filter.Types) == 0 || slices.Contains(s.filter.Types, eventType)) {
			types = append(types, eventType)
		}
		if !slices.Contains(known, topic) {
			known = append(known, topic)
		}
	}
	if len(types) == 0 && !slices.Contains(known, s.filter.Topic) {
		slices.Sort(known)
		if len(known) == 0 {
			return notUnderstoodError{
				fmt.Errorf("topic: which types go to %q only relays know, and none is there", s.filter.Topic),
			}
		}
		return notUnderstoodError{fmt.Errorf("topic: no relay that is there publishes to %q; they know %s", s.filter.Topic,
			strings.Join(known[:min(len(known), 20)], ", "))}
	}
	slices.Sort(types)
	if types == nil {
		types = noTypes
	}
	s.filter.Types = types
	return nil
}

// choose finds the index that answers, and prepares the text of what is looked at.
func (s *search) choose(ctx context.Context) error {
	switch {
	case len(s.filter.IDs) > 0:
		s.by = "id"
		return nil
	case s.filter.AggregateID != "":
		var events int
		if err := s.QueryRow(ctx, s.sql("aggregate_count"), s.filter.AggregateType, s.filter.AggregateID, mostGathered).
			Scan(&events); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		if events < mostGathered { // a larger one is looked for page by page, as what has no index
			s.by = "aggregate"
			return nil
		}
	}
	if small, err := s.fewAreHeld(ctx); err != nil || small {
		s.by = "held"
		return err
	}
	if len(s.filter.Types) == 1 && s.filter.Created == (Period{}) && s.filter.Published == (Period{}) &&
		!strings.HasPrefix(s.page.After, "id.") {
		var indexed bool
		if err := s.QueryRow(ctx, s.sql("type_index"), s.table("outbox_events")).Scan(&indexed); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		if indexed {
			s.by = "type"
			return nil
		}
	}
	s.by = "newest"
	if s.belowSeq != 1<<63-1 {
		return notUnderstoodError{
			errors.New("the page before was found by an index that is not there any more: begin anew"),
		}
	}
	return nil
}

// fewAreHeld tells whether only states are asked for that stand in the tables of held and dead events, and those are
// few.
func (s *search) fewAreHeld(ctx context.Context) (bool, error) {
	if len(s.filter.States) == 0 {
		return false, nil
	}
	kinds, dead := []int16{}, false
	for _, number := range s.filter.stateNumbers() {
		switch is := state.State(number); {
		case is == state.Dead:
			dead = true
		case is >= state.Retrying && is <= state.DeadBlocking:
			kinds = append(kinds, number)
		default:
			return false, nil
		}
	}
	var held, letters int
	if err := s.QueryRow(ctx, s.sql("looked_held_count"), kinds, dead, mostGathered+1).Scan(&held, &letters); err != nil {
		return false, err //nolint:wrapcheck // look says what it was
	}
	s.kinds = kinds
	if dead {
		s.kinds = append(s.kinds, int16(state.Dead))
	}
	return held <= mostGathered && letters <= mostGathered, nil
}

// columns are those that a look needs, of the row e.
const columns = "e.lane, e.seq, e.id, e.created_at, e.published_at, e.attempt_count, e.state, e.namespace, " +
	"e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id, e.last_error"

// readsPayloads tells whether the columns are named that not every role may read.
func (s *search) readsPayloads() bool { return s.page.Payloads || len(s.filter.Data) > 0 }

// add makes a value a parameter, and returns its name.
func (s *search) add(value any) string {
	s.args = append(s.args, value)
	return "$" + strconv.Itoa(len(s.args))
}

// data is what a filter asks of the payload of a row.
func (s *search) data(row string, of []DataValue) (text string) {
	for _, value := range of {
		text += fmt.Sprintf(" AND %s.payload_json::json #>> %s::text[] = %s::text", row,
			s.add(append([]string{"data"}, value.Path...)), s.add(value.Value))
	}
	return text
}

// closedBefore is what a row must meet that was published or discarded by a moment. When one was discarded only the log
// says; and of what was issued again since there is a new event already. CASE keeps others from being looked up there.
func (s *search) closedBefore(moment string) string {
	return fmt.Sprintf("CASE WHEN e.published_at IS NOT NULL THEN e.published_at <= %s::timestamptz WHEN e.state = %d "+
		"THEN NOT EXISTS (SELECT FROM %s a WHERE a.event_id = e.id AND a.verb IN ('discard', 'reissue') "+
		"AND a.acted_at > %s::timestamptz OFFSET 0) ELSE true END", moment, state.Discarded, s.table("outbox_actions"),
		moment)
}

// statement is the whole text, with its parameters.
func (s *search) statement() string {
	f := s.filter
	attempts := f.Attempts
	if !attempts.Set {
		attempts = AttemptRange{Most: 1<<31 - 1}
	}
	created, published := ends(f.Created.at(s.now)), ends(f.Published.at(s.now))
	s.args = []any{
		f.Types, f.AggregateType, f.AggregateID, f.Tenant, f.Namespace, f.stateNumbers(), strings.ToLower(f.Error),
		created[0], created[1], published[0], published[1], attempts.Least, attempts.Most, s.page.Limit,
	}
	named, content := columns, "NULL, NULL, NULL"
	if s.readsPayloads() {
		named += ", e.payload_json"
	}
	if s.page.Payloads {
		named += ", e.headers, e.dedupe_key"
		content = "e.payload_json::text, e.headers::text, e.dedupe_key"
	}
	payload := s.data("e", f.Data)
	if !s.lastAt.IsZero() && (s.by == fromAll || s.by == fromAggregate) {
		payload += " AND " + s.closedBefore(s.add(s.lastAt))
	}
	order := "e.id DESC"
	if strings.HasPrefix(s.by, "numbers") {
		order = "e.seq"
	}
	pieces := []string{"{columns}", named}
	switch s.by {
	case "id":
		pieces = append(pieces, "{ids}", s.add(texts(f.IDs)), "{below}", s.add(s.below.String()))
	case "aggregate":
		pieces = append(pieces, "{type}", s.add(f.AggregateType), "{aggregate}", s.add(f.AggregateID),
			"{window}", s.add(mostGathered), "{below}", s.add(s.below.String()))
	case "held":
		kinds := slices.DeleteFunc(slices.Clone(s.kinds), func(k int16) bool { return k == int16(state.Dead) })
		pieces = append(pieces, "{kinds}", s.add(kinds), "{window}", s.add(mostGathered), "{below}",
			s.add(s.below.String()), "{dead}", s.add(slices.Contains(s.kinds, int16(state.Dead))))
	case "type":
		order = "e.seq DESC"
		pieces = append(pieces, "{type}", s.add(f.Types[0]), "{below}", s.add(s.belowSeq), "{window}", s.add(s.most))
	case fromAll, fromAggregate, fromDead, fromHeld:
		pieces = append(pieces, "{above}", s.add(s.above), "{upto}", s.add(s.upto))
		switch s.by {
		case fromAggregate:
			pieces = append(pieces, "{type}", s.add(f.AggregateType), "{aggregate}", s.add(f.AggregateID))
		case fromDead:
			pieces = append(pieces, "{topic}", s.add(f.Topic), "{reason}", s.add(f.Reason), "{last_at}", s.add(s.lastAt))
		}
	default:
		pieces = append(pieces, "{least}", s.add(s.least.String()), "{below}", s.add(s.below.String()), "{window}",
			s.add(s.most))
	}
	file := map[string]string{
		"id": "looked_ids", "aggregate": "looked_aggregate", "held": "looked_held", "type": "looked_type",
		"newest": "looked_newest", fromAll: "looked_numbers", fromAggregate: "looked_numbers_aggregate",
		fromDead: "looked_numbers_dead", fromHeld: "looked_numbers_held",
	}[s.by]
	return s.sql("events", "{looked}", s.sql(file, pieces...), "{content}", content, "{payload}", payload,
		"{order}", order)
}

// ends are the ends of a period, nil for none.
func ends(from, to time.Time) (list [2]*time.Time) {
	if !from.IsZero() {
		list[0] = &from
	}
	if !to.IsZero() {
		list[1] = &to
	}
	return list
}

func texts(ids []outbox.ID) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = id.String()
	}
	return list
}

// inOrder tells whether rows are looked at in the order of an index, and no further than needed.
func (s *search) inOrder() bool { return s.by == "newest" || s.by == "type" }

// run finds the page.
func (s *search) run(ctx context.Context) (page EventPage, err error) {
	if s.inOrder() {
		if _, err := s.Exec(ctx, s.sql("look_in_order")); err != nil {
			return page, err //nolint:wrapcheck // look says what it was
		}
	}
	rows, err := s.Query(ctx, s.statement(), s.args...)
	if err != nil {
		return page, err //nolint:wrapcheck // look says what it was
	}
	events, last, err := readEvents(rows)
	if err != nil {
		return page, err
	}
	page.Events = events
	if page.Window, page.Next, err = s.window(ctx, events, last); err != nil {
		return page, err
	}
	if s.narrowed && s.by == "newest" && page.Window.Complete {
		if err := s.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM "+s.table("outbox_events")+
			" e WHERE e.id < $1::text::uuid)", s.least.String()).Scan(&page.Window.Complete); err != nil {
			return page, err //nolint:wrapcheck // look says what it was
		}
		since := idtime.Of(s.least)
		page.Window.Since = &since
	}
	return page, s.addTopics(ctx, events)
}

// window says what was looked at, and where the next page begins.
func (s *search) window(ctx context.Context, events []Event, last int) (w Window, next string, err error) {
	w.By = s.by
	full := len(events) == s.page.Limit
	if full {
		end := events[len(events)-1]
		next = "id." + end.ID.String()
		if s.by == "type" {
			next = "seq." + strconv.FormatInt(end.Seq, 10)
		}
		since := idtime.Of(end.ID)
		w.Looked, w.Since = last, &since
	}
	if s.by != "newest" && s.by != "type" {
		w.Looked, w.Complete = len(events), !full
		return w, next, nil
	}
	if full {
		return w, next, nil
	}
	var end string
	if s.by == "type" {
		err = s.QueryRow(ctx, s.sql("looked_type_end"), s.filter.Types[0], s.belowSeq, s.most).Scan(&w.Looked, &end)
	} else {
		err = s.QueryRow(ctx, s.sql("looked_newest_end"), s.least.String(), s.below.String(), s.most).Scan(&w.Looked, &end)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		w.Complete = true
		return w, "", nil
	}
	if err != nil {
		return w, "", err //nolint:wrapcheck // look says what it was
	}
	if id, err := outbox.ParseID(end); err == nil {
		since := idtime.Of(id)
		w.Since = &since
	}
	if w.Complete = w.Looked < s.most; !w.Complete {
		next = map[bool]string{true: "seq.", false: "id."}[s.by == "type"] + end
	}
	return w, next, nil
}

// readEvents reads rows of events.sql, and the place of the last one. Where rows have more columns, they go to more.
func readEvents(rows pgx.Rows, more ...any) (events []Event, last int, err error) {
	var e Event
	var id string
	var is int16
	var payload, headers, key *string
	_, err = pgx.ForEachRow(rows, append([]any{
		&last, &id, &e.Seq, &e.Lane, &e.Namespace, &e.Type, &e.AggregateType, &e.AggregateID, &e.Tenant, &is,
		&e.CreatedAt, &e.PublishedAt, &e.HeldSince, &e.DueAt, &e.Attempts, &e.LastError, &e.Erased, &payload, &headers,
		&key,
	}, more...), func() (err error) {
		event := e
		if event.ID, err = outbox.ParseID(id); err != nil {
			return err
		}
		event.State, event.CreatedAt = state.State(is).String(), e.CreatedAt.UTC()
		for _, at := range []**time.Time{&event.PublishedAt, &event.HeldSince, &event.DueAt} {
			if *at != nil {
				moment := (*at).UTC()
				*at = &moment
			}
		}
		if payload != nil {
			event.Payload = json.RawMessage(*payload)
		}
		if headers != nil {
			event.Headers = json.RawMessage(*headers)
		}
		if key != nil {
			event.DedupeKey = *key
		}
		events = append(events, event)
		return nil
	})
	return events, last, err //nolint:wrapcheck // look says what it was
}
