package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/console/internal/jsonview"
	"github.com/posthaste-dev/posthaste/internal/span"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// eventPage is what the page of one event has.
type eventPage struct {
	operator.EventDetail
	// Deleted tells that only a dead letter is left of it.
	Deleted       bool
	Why           operator.Explanation
	Line          []moment
	Before, After *operator.Event
	// None is what stands where there is none before or after it.
	None         string
	Verbs        []verb
	Erasable     bool
	Command, SQL string
	// Content is there when somebody has looked at it.
	Content *content
}

// moment is something that happened to an event.
type moment struct {
	At          time.Time
	What, Class string
	Detail      string
}

// content is a payload as people see it.
type content struct {
	Payload, Headers template.HTML
	DedupeKey, Trace string
	Bytes            int
}

func (q *request) event() error {
	p, err := q.eventPage()
	if err != nil {
		return err
	}
	refresh := 0
	if p.Why.Waits || p.State == "ready" {
		refresh = 3
	}
	return q.ok("event", p.Type, refresh, p)
}

func (q *request) eventPage() (*eventPage, error) {
	detail, err := q.detail()
	if err != nil {
		return nil, err
	}
	p := &eventPage{
		EventDetail: detail, Deleted: detail.State == operator.StateDeleted, Line: lineOf(detail),
		Verbs: verbsFor(detail.State, q), Erasable: !detail.Erased && slices.Contains(erasable, detail.State),
	}
	if p.Why, err = q.outbox.op.Explain(q.Context(), detail.ID); err != nil {
		return nil, err
	}
	if len(q.user.Tenants) > 0 {
		p.Why = p.Why.WithoutOthers()
	}
	schema := cmp.Or(q.outbox.Schema, outbox.DefaultSchema)
	p.Command = "outboxctl events explain " + detail.ID.String() + " --schema " + schema
	query := `SELECT * FROM "%s".outbox_status WHERE id = '%s';`
	if p.Deleted { // of a dead letter not all columns are for everybody
		query = `SELECT failed_at, error_reason, error_detail FROM "%s".outbox_dlq WHERE event_id = '%s';`
	}
	p.SQL = fmt.Sprintf(query, strings.ReplaceAll(schema, `"`, `""`), detail.ID)
	if p.Deleted {
		return p, nil
	}
	beside, err := q.outbox.op.Neighbors(q.Context(), detail.ID)
	if err != nil {
		return nil, err
	}
	p.Before, p.After, p.None = q.own(beside.Before), q.own(beside.After), "none of its aggregate"
	if !beside.Complete {
		p.None = "none of its aggregate that is near"
	}
	return p, nil
}

// erasable are the states in which an event may be erased.
var erasable = []string{"published", "discarded", "dead", "dead and blocking", operator.StateDeleted}

// detail reads the event that the path names, or its dead letter where that alone is left. Another tenant's is not
// there, and neither is one of which any dead letter is another tenant's: the payload may be that one's.
func (q *request) detail() (operator.EventDetail, error) {
	id, err := q.id()
	if err != nil {
		return operator.EventDetail{}, err
	}
	detail, err := q.outbox.op.Event(q.Context(), id, false)
	if errors.Is(err, operator.ErrNoEvent) {
		detail, err = q.outbox.op.Left(q.Context(), id)
	}
	foreign := func(letter operator.DeadLetter) bool { return !q.owns(letter.Tenant) }
	if err == nil && (!q.owns(detail.Tenant) ||
		detail.State == operator.StateDeleted && slices.ContainsFunc(detail.DeadLetters, foreign)) {
		err = operator.ErrNoEvent
	}
	return detail, err
}

// own is an event, if the user may see it.
func (q *request) own(e *operator.Event) *operator.Event {
	if e == nil || !q.owns(e.Tenant) {
		return nil
	}
	return e
}

// lineOf puts in order what happened to an event.
func lineOf(d operator.EventDetail) (line []moment) {
	line = append(line, moment{d.CreatedAt, "emitted", "plain", "its transaction began"})
	for _, a := range d.History {
		what := fmt.Sprintf("attempt %d failed: %s", a.Number, strings.ReplaceAll(a.Class, "_", " "))
		line = append(line, moment{a.At, what, "warn", strings.TrimSpace(a.Error + byRelay(a.Relay))})
	}
	for _, l := range d.DeadLetters {
		line = append(line, moment{l.FailedAt, "died: " + strings.ReplaceAll(l.Reason, "_", " "), "bad", l.Detail})
	}
	for _, a := range d.Actions {
		line = append(line, moment{a.At, a.Verb + " by " + a.Actor, "plain", a.Reason})
	}
	if d.HeldSince != nil {
		line = append(line, moment{*d.HeldSince, d.State, "warn", ""})
	}
	if d.PublishedAt != nil {
		line = append(line, moment{
			*d.PublishedAt, "published", "good",
			"after " + span.Of(d.PublishedAt.Sub(d.CreatedAt)),
		})
	}
	slices.SortStableFunc(line, func(a, b moment) int { return a.At.Compare(b.At) })
	return line
}

func byRelay(name string) string {
	if name == "" {
		return ""
	}
	return " (relay " + name + ")"
}

// payload shows the page of an event with its payload. That somebody has looked is in the log of actions.
func (q *request) payload() error {
	p, err := q.eventPage()
	if err != nil {
		return err
	}
	found, err := q.look(p.ID)
	if err != nil {
		return err
	}
	p.Content = &content{
		Payload: jsonview.HTML(found.Payload, q.outbox.Mask, wrong(p.EventDetail)), Bytes: len(found.Payload),
		DedupeKey: found.DedupeKey, Trace: traceOf(found.Headers),
	}
	if len(found.Headers) > 0 {
		p.Content.Headers = jsonview.HTML(found.Headers, nil, nil)
	}
	return q.ok("event", p.Type, 0, p)
}

func (q *request) look(event outbox.ID) (operator.Content, error) {
	return q.outbox.op.Look(q.Context(), operator.Action{ID: outbox.NewID(), Actor: q.user.Name, Reason: "console"}, event)
}

// pointer finds where in a payload a contract was broken, as the text of the dead letter says it.
var pointer = regexp.MustCompile(`'(/[^']{0,200})'`)

// wrong are the JSON pointers that dead letters blame. Contracts are about the data within the envelope.
func wrong(d operator.EventDetail) (pointers []string) {
	if len(d.DeadLetters) == 0 {
		return nil
	}
	for _, found := range pointer.FindAllStringSubmatch(d.DeadLetters[0].Detail, 20) {
		pointers = append(pointers, found[1], "/data"+found[1])
	}
	return pointers
}

// traceOf is the id of the trace in which an event was emitted.
func traceOf(headers json.RawMessage) string {
	var known struct {
		Traceparent string `json:"traceparent"`
	}
	if json.Unmarshal(headers, &known) != nil {
		return ""
	}
	parts := strings.Split(known.Traceparent, "-")
	if len(parts) != 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}

// aggregatePage is what the page of an aggregate has.
type aggregatePage struct {
	operator.Aggregate
	Hidden, Over int
	Blocked      map[outbox.ID]bool
	// OthersBlock tells that one of another tenant does, which is all that may be told of it.
	OthersBlock bool
}

func (q *request) aggregate() error {
	kind, id := q.form.Get("type"), q.form.Get("id")
	found, err := q.outbox.op.Aggregate(q.Context(), kind, id, 50)
	if err != nil {
		return err
	}
	p := &aggregatePage{Aggregate: found, Blocked: map[outbox.ID]bool{}}
	p.Hidden, p.Over = found.Hidden()
	if len(q.user.Tenants) > 0 { // how many others there are is not theirs to know
		foreign := func(e operator.Event) bool { return !q.owns(e.Tenant) }
		p.OthersBlock = slices.ContainsFunc(p.Heads, foreign)
		p.Events, p.Heads = slices.DeleteFunc(p.Events, foreign), slices.DeleteFunc(p.Heads, foreign)
		p.Hidden, p.Over = 0, 0
		if len(p.Events) == 0 {
			return operator.ErrNoEvent
		}
	}
	for _, head := range p.Heads {
		p.Blocked[head.ID] = true
	}
	for _, e := range p.Events { // what comes later will wait behind one, even if nothing does yet
		if e.State == "dead and blocking" && !p.Blocked[e.ID] {
			p.Blocked[e.ID] = true
			p.Heads = append(p.Heads, e)
		}
	}
	return q.ok("aggregate", kind+"/"+id, 3, p)
}

// Head tells whether others wait behind an event.
func (p *aggregatePage) Head(e operator.Event) bool { return p.Blocked[e.ID] }

// ids are those that a request names, each once.
func (q *request) ids() (ids []outbox.ID, err error) {
	for _, text := range q.form["id"] {
		id, err := outbox.ParseID(text)
		if err != nil {
			return nil, invalid("%q is no event's id.", cut(60, text))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	switch {
	case len(ids) == 0:
		return nil, invalid("No event is picked.")
	case len(ids) > mostIDs:
		return nil, invalid("More than %d events are picked: act on all that match a filter, as a job.", mostIDs)
	}
	return ids, nil
}

// mine checks that all of these events are of the user's tenants.
func (q *request) mine(ids []outbox.ID) error {
	if len(q.user.Tenants) == 0 {
		return nil
	}
	page, err := q.outbox.op.Events(q.Context(), operator.Filter{IDs: ids}, operator.Page{Limit: len(ids)})
	if err != nil {
		return err
	}
	own := map[outbox.ID]bool{}
	for _, e := range page.Events {
		own[e.ID] = q.owns(e.Tenant)
	}
	for _, id := range ids {
		if !own[id] {
			return operator.ErrNoEvent
		}
	}
	return nil
}
