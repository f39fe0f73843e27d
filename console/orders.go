package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// The verbs that say what the relays shall not publish, or not so fast, and what becomes of a job.
const (
	verbPause   = "pause"
	verbResume  = "resume"
	verbLimit   = "limit"
	verbUnlimit = "unlimit"
	verbCancel  = "cancel"
)

// mostName is how many characters the name of a topic or type may have.
const mostName = 512

// order is a verb about everything, a topic or a type, before somebody has confirmed it.
type order struct {
	Verb  string
	Scope operator.Scope
	// To is the page that takes it: the restored state has one of its own, for admins.
	To string
	// Action tells this decision from any other: a form that is sent twice is done once.
	Action       string
	Reason, Rate string
	// Says is what will happen, Stands what stands now, Problem what is wrong with the form.
	Says, Problem string
	Stands        []string
}

// Title says it in words, as a button does.
func (o *order) Title() string {
	words := map[string]string{
		verbPause: "Pause", verbResume: "Resume", verbLimit: "Limit", verbUnlimit: "Lift the limit of",
	}
	return words[o.Verb] + " " + o.What()
}

// What is what it is about.
func (o *order) What() string {
	switch o.Scope.Kind {
	case operator.AllScope.Kind:
		return "everything"
	case operator.RestoredScope.Kind:
		return "a restored database"
	default:
		return o.Scope.String()
	}
}

// Stops tells whether less is published after it.
func (o *order) Stops() bool { return o.Verb == verbPause || o.Verb == verbLimit }

// back is the page that shows what came of it.
func (o *order) back(q *request, outcome string) string {
	if o.Scope == operator.RestoredScope {
		return q.path("relays", "did", outcome)
	}
	topic := ""
	if o.Scope == operator.TopicScope(o.Scope.Name) {
		topic = o.Scope.Name
	}
	return q.path("topics", "did", outcome, "topic", topic)
}

// Cancel is the page that changes nothing.
func (p *page) Cancel(o *order) string { return o.back(p.q, "") }

// order reads what shall be done, and to what.
func (q *request) order() (*order, error) {
	o := &order{
		Verb: q.entry.Verb, Scope: operator.Scope{Kind: q.form.Get("scope"), Name: q.form.Get("name")},
		To:     "order/" + q.entry.Verb,
		Action: q.text("action"), Reason: q.text("reason"), Rate: q.text("rate"),
	}
	if q.entry.Name == "restored" || q.entry.Name == "trust" { // they take nothing else
		o.Verb, o.Scope, o.To = verbResume, operator.RestoredScope, "restored"
		return o, nil
	}
	switch {
	case o.Scope.Kind == operator.AllScope.Kind && o.Scope.Name == "":
	case o.Scope == operator.TopicScope(o.Scope.Name), o.Scope == operator.TypeScope(o.Scope.Name):
		if n := len([]rune(o.Scope.Name)); n == 0 || n > mostName {
			return nil, invalid("The name of the %s must have 1 to %d characters.", o.Scope.Kind, mostName)
		}
	default:
		return nil, invalid("scope must be all, topic or type, and all has no name.")
	}
	if (o.Verb == verbLimit || o.Verb == verbUnlimit) && o.Scope != operator.TopicScope(o.Scope.Name) {
		return nil, invalid("Only a topic can be limited.")
	}
	return o, nil
}

// confirmOrder shows what will happen, before it does.
func (q *request) confirmOrder() error {
	o, err := q.order()
	if err != nil {
		return err
	}
	o.Action = outbox.NewID().String()
	return q.showOrder(http.StatusOK, o)
}

func (q *request) showOrder(status int, o *order) error {
	o.Says = effects[o.Verb]
	if o.Scope == operator.RestoredScope {
		o.Says = effectOfTrust
	}
	pauses, err := q.outbox.op.Pauses(q.Context())
	if err != nil {
		return err
	}
	limits, err := q.outbox.op.Limits(q.Context())
	if err != nil {
		return err
	}
	o.Stands = o.standing(pauses, limits)
	q.show(status, "order", &page{Title: o.Title(), Data: o})
	return nil
}

// effects say what will happen.
var effects = map[string]string{
	verbPause: "All relays stop publishing it within about a second, those that start later too, until somebody resumes " +
		"it. What is in flight finishes. Nothing is charged, killed or reordered: the events wait.",
	verbResume: "All relays go on with it within about a second, from where it was. Nothing is charged, killed or " +
		"reordered. What else is paused stays paused.",
	verbLimit: "All relays together publish at most so many events per second to it, within about a second, until " +
		"somebody lifts the limit. Retries and copies count as well. Nothing is charged, killed or reordered.",
	verbUnlimit: "All relays publish to it as fast as it goes again, within about a second. Nothing is charged, killed " +
		"or reordered.",
}

const effectOfTrust = "The relays take this database for restored or copied, and publish nothing. After this they " +
	"publish what it holds as open, within about a second: events that were published after the backup was made go out " +
	"once more. Look at what would be sent before you do this, and do it on one copy of a database only."

// standing are the pauses and limits that matter to the order.
func (o *order) standing(pauses []operator.Pause, limits []operator.Limit) (says []string) {
	here := false
	for _, p := range pauses {
		if p.Scope == o.Scope || p.Scope == operator.AllScope {
			says = append(says, p.String()+".")
			here = here || p.Scope == o.Scope
		}
	}
	for _, l := range limits {
		if o.Scope == operator.TopicScope(l.Topic) {
			says = append(says, l.String()+".")
			here = here || o.Verb == verbUnlimit
		}
	}
	if !here && !o.Stops() && o.Scope != operator.RestoredScope {
		says = append(says, "There is nothing of exactly this now: it would change nothing.")
	}
	return says
}

// giveOrder does what was confirmed.
func (q *request) giveOrder() error {
	o, err := q.order()
	if err != nil {
		return err
	}
	id, err := outbox.ParseID(o.Action)
	if err != nil {
		return invalid("action must be the id of a decision: open the form again.")
	}
	rate := 0.0
	switch {
	case o.Reason == "":
		o.Problem = "Say why: somebody else will have to know when to undo it."
	case o.Verb == verbLimit:
		if rate, err = strconv.ParseFloat(o.Rate, 64); err != nil || !(rate >= operator.MinRate && rate <= operator.MaxRate) {
			o.Problem = fmt.Sprintf("A limit is a number from %s to %s per second. To stop everything, pause it.",
				operator.PerSecond(operator.MinRate), number(operator.MaxRate))
		}
	}
	if o.Problem != "" {
		return q.showOrder(http.StatusBadRequest, o)
	}
	outcome, err := q.do(o, operator.Action{ID: id, Actor: q.user.Name, Reason: o.Reason}, rate)
	q.outbox.forgetOrders()
	if err != nil {
		return err
	}
	did := o.Verb + " " + string(outcome)
	if o.Scope == operator.RestoredScope {
		did = o.Scope.Kind + " " + string(outcome)
	}
	http.Redirect(q.w, q.Request, o.back(q, strings.ReplaceAll(did, " ", "-")), http.StatusSeeOther)
	return nil
}

func (q *request) do(o *order, action operator.Action, rate float64) (operator.Outcome, error) {
	switch o.Verb {
	case verbPause:
		return q.outbox.op.Pause(q.Context(), action, o.Scope)
	case verbResume:
		return q.outbox.op.Resume(q.Context(), action, o.Scope)
	case verbLimit:
		return q.outbox.op.Limit(q.Context(), action, o.Scope.Name, rate)
	default:
		return q.outbox.op.Unlimit(q.Context(), action, o.Scope.Name)
	}
}

// orderNotice says in a sentence what an order came to.
type orderNotice struct{ Class, Text string }

// orderNotices are all that can be said: an address brings only the name of one.
var orderNotices = map[string]orderNotice{
	"pause-done":           {"good", "It is paused. The relays stop within about a second."},
	"pause-done-before":    {"plain", "It was paused by this same decision already; it was not done twice."},
	"pause-not-applicable": {"warn", "It was paused before. Nothing was changed; the reason that stands is below."},

	"resume-done":           {"good", "It is resumed. The relays go on within about a second."},
	"resume-done-before":    {"plain", "It was resumed by this same decision already; it was not done twice."},
	"resume-not-applicable": {"warn", "Nothing of exactly this was paused. Nothing was changed."},

	"limit-done":           {"good", "It is limited. The relays keep to it within about a second."},
	"limit-done-before":    {"plain", "It was limited by this same decision already; it was not done twice."},
	"limit-not-applicable": {"warn", "It was limited to that before. Nothing was changed."},

	"unlimit-done":           {"good", "The limit is lifted. The relays go faster within about a second."},
	"unlimit-done-before":    {"plain", "The limit was lifted by this same decision already; it was not done twice."},
	"unlimit-not-applicable": {"warn", "There was no limit. Nothing was changed."},

	"restored-done":           {"good", "The relays publish from this database within about a second."},
	"restored-done-before":    {"plain", "It was resumed by this same decision already; it was not done twice."},
	"restored-not-applicable": {"warn", "The relays did not wait for this. Nothing was changed."},
}

func orderNoticeOf(did string) orderNotice { return orderNotices[did] }
