package console

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// verb is what can be done to events that are named.
type verb struct {
	Name, Label string
	// Says is what will happen, for whoever is about to decide.
	Says string
	// From are the states in which an event must be.
	From  []string
	Grave bool // cannot be taken back
	do    func(*operator.Operator, context.Context, operator.Action, []outbox.ID) ([]operator.Result, []outbox.ID, error)
}

// simple is a verb that makes no new events.
func simple(f func(*operator.Operator, context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error)) func(
	*operator.Operator, context.Context, operator.Action, []outbox.ID) ([]operator.Result, []outbox.ID, error) {
	return func(o *operator.Operator, ctx context.Context, a operator.Action, ids []outbox.ID) (
		[]operator.Result, []outbox.ID, error,
	) {
		results, err := f(o, ctx, a, ids...)
		return results, nil, err
	}
}

var (
	dead     = []string{"dead", "dead and blocking"}
	blocking = []string{"dead and blocking"}
)

var verbs = []verb{
	{
		"redrive", "Redrive", "They are tried again with all their attempts, under the same id and in their old place. " +
			"What waits behind one goes on waiting until it is published.", dead, false, simple((*operator.Operator).Redrive),
	},
	{
		"reissue", "Reissue", "A new event with a new id is made of each, at the tail: consumers handle it as something " +
			"new. A dead one is discarded with it, and what waits behind it goes.", dead, true,
		func(o *operator.Operator, ctx context.Context, a operator.Action, ids []outbox.ID) (
			[]operator.Result, []outbox.ID, error,
		) {
			return o.ReissueDead(ctx, a, ids...)
		},
	},
	{
		"skip", "Let others pass", "What waits behind them goes. They stay dead, and can still be redriven.",
		blocking, false, simple((*operator.Operator).Skip),
	},
	{
		"discard", "Discard", "They are never published, retention may delete them, and what waits behind them goes.",
		dead, true, simple((*operator.Operator).Discard),
	},
	{
		"release", "Release", "They are looked at again, in their old place. If no relay knows their type they are parked " +
			"again.", []string{"parked"}, false, simple((*operator.Operator).Release),
	},
	{
		"redeliver", "Redeliver", "They are sent once more, with the same id and bytes: a consumer that has handled them " +
			"passes them over.",
		[]string{"published"},
		false,
		simple(func(o *operator.Operator, ctx context.Context, a operator.Action, ids ...outbox.ID) (
			[]operator.Result, error,
		) {
			return o.Redeliver(ctx, a, operator.Redelivery{}, ids...)
		}),
	},
}

// verbsFor are the verbs for an event of a state that the user may use.
func verbsFor(state string, q *request) (fit []verb) {
	if !q.user.Can(operatorRole) {
		return nil
	}
	for _, v := range verbs {
		if slices.Contains(v.From, state) {
			fit = append(fit, v)
		}
	}
	return fit
}

// confirmPage is what somebody reads before deciding, and how it ended afterwards.
type confirmPage struct {
	Verb   verb
	Events []operator.Event
	Gone   int
	Action string
	// Results are there when it is done.
	Results []resultLine
	Counts  map[operator.Outcome]int
}

type resultLine struct {
	Event   outbox.ID
	Outcome operator.Outcome
	Was     string
	New     string
}

// verb is the one of the entry.
func (q *request) verb() (of verb) {
	for _, v := range verbs {
		if v.Name == q.entry.Verb {
			of = v
		}
	}
	return of
}

// picked reads a verb and the events that it is about, all of them the user's.
func (q *request) picked() (v verb, ids []outbox.ID, err error) {
	v = q.verb()
	if ids, err = q.ids(); err != nil {
		return v, nil, err
	}
	return v, ids, q.mine(ids)
}

// confirm shows what an action would be about.
func (q *request) confirm() error {
	v, ids, err := q.picked()
	if err != nil {
		return err
	}
	page, err := q.outbox.op.Events(q.Context(), operator.Filter{IDs: ids}, operator.Page{Limit: len(ids)})
	if err != nil {
		return err
	}
	return q.ok("act", v.Label, 0, &confirmPage{
		Verb: v, Events: page.Events, Gone: len(ids) - len(page.Events), Action: outbox.NewID().String(),
	})
}

// act does it. A form that is sent twice is done once.
func (q *request) act() error {
	v, ids, err := q.picked()
	if err != nil {
		return err
	}
	action, err := q.action()
	if err != nil {
		return err
	}
	results, made, err := v.do(q.outbox.op, q.Context(), action, ids)
	if err != nil {
		return err
	}
	return q.done(v.Label, results, made)
}

// done shows what an action came to, and which events it made.
func (q *request) done(title string, results []operator.Result, made []outbox.ID) error {
	p := &confirmPage{Counts: map[operator.Outcome]int{}}
	for i, r := range results {
		line := resultLine{Event: r.Event, Outcome: r.Outcome, Was: r.Was}
		if i < len(made) && made[i] != (outbox.ID{}) {
			line.New = made[i].String()
		}
		p.Results = append(p.Results, line)
		p.Counts[r.Outcome]++
	}
	return q.ok("act", title, 0, p)
}

// editPage is the form in which somebody changes an event's data.
type editPage struct {
	operator.EventDetail
	Data, Action, Reason string
	// Why says why it was not accepted.
	Why string
}

// edit shows the data of an event, to be changed. It is a look at a payload, and logged as one.
func (q *request) edit() error {
	detail, err := q.editable()
	if err != nil {
		return err
	}
	found, err := q.look(detail.ID)
	if err != nil {
		return err
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(found.Payload, &envelope); err != nil || envelope.Data == nil {
		return invalid("The payload of this event has no data that could be changed.")
	}
	if len(envelope.Data) > mostData {
		return invalid("These are more than 1 MiB of data, for which a form has no room. Use outboxctl dead edit.")
	}
	return q.ok("edit", "Edit and reissue", 0, &editPage{
		EventDetail: detail, Data: indent(envelope.Data), Action: outbox.NewID().String(),
	})
}

// editable is an event of which the user may see all data. Of one that is deleted no new one can be made.
func (q *request) editable() (operator.EventDetail, error) {
	detail, err := q.detail()
	switch {
	case err != nil:
	case detail.State == operator.StateDeleted:
		err = operator.ErrNoEvent
	case len(q.outbox.Mask) > 0:
		err = forbidden("Parts of payloads are masked here, so nobody can edit one. Use outboxctl dead edit.")
	}
	return detail, err
}

// reissue makes a new event of the data in the form.
func (q *request) reissue() error {
	detail, err := q.editable()
	if err != nil {
		return err
	}
	action, err := q.action()
	if err != nil {
		return err
	}
	data := q.form.Get("data")
	if len(data) > mostData || !json.Valid([]byte(data)) {
		return q.ok("edit", "Edit and reissue", 0, &editPage{
			EventDetail: detail, Data: data, Action: action.ID.String(), Reason: action.Reason,
			Why: "This is no JSON: " + whyNoJSON(data),
		})
	}
	if why := q.broken(detail, data); why != "" {
		return q.ok("edit", "Edit and reissue", 0, &editPage{
			EventDetail: detail, Data: data, Action: action.ID.String(), Reason: action.Reason,
			Why: "This breaks the contract of " + detail.Type + ": " + why,
		})
	}
	result, made, err := q.outbox.op.Edit(q.Context(), action, detail.ID, json.RawMessage(data))
	if err != nil {
		return err
	}
	return q.done("Edit and reissue", []operator.Result{result}, []outbox.ID{made})
}

// broken says how an event with these data would break its contract, as far as this console knows it.
func (q *request) broken(of operator.EventDetail, data string) string {
	if q.outbox.Check == nil {
		return ""
	}
	body, err := json.Marshal(outbox.Envelope{
		Version: 1, EventID: of.ID, OccurredAt: of.CreatedAt, Data: json.RawMessage(data),
	})
	if err != nil {
		return err.Error()
	}
	_, err = q.outbox.Check(outbox.Stored{
		ID: of.ID, EventType: of.Type, AggregateType: of.AggregateType, AggregateID: of.AggregateID,
		Namespace: of.Namespace, TenantID: of.Tenant, Payload: body,
	})
	var broken *outbox.ContractError
	if !errors.As(err, &broken) || broken.Reason == outbox.UnknownEventType { // of that a relay may know more
		return ""
	}
	return broken.Detail
}

func whyNoJSON(data string) string {
	var value json.RawMessage
	if err := json.Unmarshal([]byte(data), &value); err != nil {
		return err.Error()
	}
	return "it is too long"
}
