package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// The bounds of an explanation.
const (
	mostHeads    = 200
	mostBefore   = 10_000 // events of the lane that are looked at before it, from the floor up and from it down
	mostAround   = 1_000  // events of the lane in which the last publish is looked for, at each of a few places
	stuckAtLeast = 30 * time.Second
)

// An Explanation says why an event is where it is.
type Explanation struct {
	ID outbox.ID `json:"id"`
	// Event is nil where it is not in the table.
	Event *Event `json:"event,omitempty"`
	// Holder is who holds its lane; nil where the event is not in the table.
	Holder *LaneHolder `json:"holder,omitempty"`
	// Waits tells whether the event is to be published still and something keeps it from that.
	Waits bool `json:"waits"`
	// Causes are all that is known, the most important first.
	Causes []Cause `json:"causes"`
}

// A Cause is one reason.
type Cause struct {
	// Code is for programs: see the constants.
	Code CauseCode `json:"code"`
	// Says is a sentence for people, Do what one can do about it; empty where nothing needs to be done.
	Says string `json:"says"`
	Do   string `json:"do,omitempty"`
	// Keeps tells whether the event waits because of it.
	Keeps bool `json:"keeps"`
	// others tells that it names what may be another tenant's, and told is what may be said without that.
	others bool
	told   string
}

// WithoutOthers is the explanation for somebody who may see nothing but what is of the event's own tenant.
func (e Explanation) WithoutOthers() Explanation {
	var own []Cause
	for _, c := range e.Causes {
		switch {
		case !c.others:
			own = append(own, c)
		case c.told != "":
			own = append(own, Cause{Code: c.Code, Keeps: c.Keeps, Says: c.told})
		}
	}
	e.Causes = own
	return e
}

// behindOthers marks a cause that names an event before this one, which may be another tenant's.
func (c *Cause) behindOthers() {
	c.others, c.told = true, "It waits behind an event of its aggregate that is another tenant's."
}

// CauseCode names a cause.
type CauseCode string

// The causes, the most important first: what is over, what stops everything, what stops the lane, the topic or the
// type, what is before the event, and what passes by itself.
const (
	CausePublished      CauseCode = "published"       // nothing is to be done
	CauseDiscarded      CauseCode = "discarded"       // by an operator
	CauseDead           CauseCode = "dead"            // later events went on
	CauseDeadBlocking   CauseCode = "dead_blocking"   // later events wait for it
	CausePruned         CauseCode = "pruned"          // retention may have deleted it
	CauseNotFound       CauseCode = "not_found"       // not in the table, and retention did not take it
	CauseRestored       CauseCode = "restored"        // relays take the database for restored or copied
	CauseStandby        CauseCode = "standby"         // the database is in recovery
	CauseNoRelay        CauseCode = "no_relay"        // no relay is alive
	CausePausedAll      CauseCode = "paused_all"      // by an operator
	CausePausedTopic    CauseCode = "paused_topic"    // by an operator
	CausePausedType     CauseCode = "paused_type"     // by an operator
	CauseBehindDead     CauseCode = "behind_dead"     // the head of its line is dead and blocks
	CauseTypeUnknown    CauseCode = "type_unknown"    // to all relays that are alive
	CauseBehindParked   CauseCode = "behind_parked"   // the head of its line is parked
	CauseLaneUnheld     CauseCode = "lane_unheld"     // by any relay that is alive
	CauseTopicFailing   CauseCode = "topic_failing"   // its breaker has paused it
	CauseTopicLimited   CauseCode = "topic_limited"   // by an operator: it goes in its turn
	CauseRelayStuck     CauseCode = "relay_stuck"     // alive, and publishes nothing of the lane
	CauseKnownByOthers  CauseCode = "known_by_others" // by a relay that does not hold the lane
	CauseParked         CauseCode = "parked"          // though its type is known
	CauseQuarantine     CauseCode = "quarantine"      // relays died in this lane
	CauseBehindRetrying CauseCode = "behind_retrying" // the head of its line waits for its next attempt
	CauseBackoff        CauseCode = "backoff"         // it waits for its own next attempt
	CauseBacklog        CauseCode = "backlog"         // others of its lane are before it
	CauseBelowFloor     CauseCode = "below_floor"     // a sweep finds it
	CauseBehindNothing  CauseCode = "behind_nothing"  // it waits, and what it waited for is gone
	CauseDue            CauseCode = "due"             // it goes out within about a second
	CauseOpenWriter     CauseCode = "open_writer"     // holds up nobody else, and may be what is looked for
)

// rank is the order of importance.
var rank = []CauseCode{
	CausePublished, CauseDiscarded, CauseDead, CauseDeadBlocking, CausePruned, CauseNotFound, CauseRestored,
	CauseStandby, CauseNoRelay, CausePausedAll, CausePausedTopic, CausePausedType, CauseBehindDead, CauseTypeUnknown,
	CauseBehindParked, CauseLaneUnheld, CauseTopicFailing, CauseTopicLimited, CauseRelayStuck, CauseKnownByOthers,
	CauseParked, CauseQuarantine, CauseBehindRetrying, CauseBackoff, CauseBacklog, CauseBelowFloor, CauseBehindNothing,
	CauseDue, CauseOpenWriter,
}

// byImportance puts what keeps the event first, because of the rest some only may.
func byImportance(a, b Cause) int {
	if a.Keeps != b.Keeps {
		return map[bool]int{true: -1, false: 1}[a.Keeps]
	}
	return slices.Index(rank, a.Code) - slices.Index(rank, b.Code)
}

// Explain says why an event waits, with all causes at once, or what became of it. It changes nothing, and the grants
// of the viewer role are enough; how old other transactions are only members of pg_read_all_stats see.
func (o *Operator) Explain(ctx context.Context, id outbox.ID) (Explanation, error) {
	found := Explanation{ID: id}
	err := o.look(ctx, "explain", func(l *looking) error {
		f, err := o.facts(ctx, l, id)
		if err != nil {
			return err
		}
		found.Causes = f.causes()
		if f.there {
			found.Event, found.Holder = &f.event, &f.holder
		}
		return nil
	})
	slices.SortStableFunc(found.Causes, byImportance)
	for i := range found.Causes {
		found.Causes[i].Do = commandsIn(o.schema, found.Causes[i].Do)
	}
	found.Waits = slices.ContainsFunc(found.Causes, func(c Cause) bool { return c.Keeps })
	return found, err
}

// facts is what an explanation is made from: what the tables and the server say at one moment.
type facts struct {
	id      outbox.ID
	now     time.Time
	there   bool
	event   Event
	holder  LaneHolder
	letters []DeadLetter
	actions []ActionDone

	cutOff  *time.Time // of retention; only for an event that is not there
	deleted int64

	alive    []aliveRelay
	known    []knownType
	failing  []failingTopic
	pauses   []Pause
	limits   []Limit
	heads    []head
	before   before
	lastOut  *time.Time // when something of the lane was last published
	identity identity
	writers  []openWriter
}

type aliveRelay struct {
	id, name string
	lanes    int
}

// knownType is a type that a relay knows.
type knownType struct{ relay, eventType, topic string }

type failingTopic struct {
	relay, name, topic string
	since              time.Time
	err                string
}

// head is a held event before this one in its aggregate.
type head struct {
	seq       int64
	kind      state.State
	due       *time.Time
	since     time.Time
	eventType string
	id        string
	attempts  int
	err       string
	topic     string // of its dead letter
	tenant    string
}

// before is what is ready before the event in its lane.
type before struct {
	looked, ready int
	oldest        *time.Time
	first         *int64   // the number of the first that is ready
	types         []string // of its own aggregate
}

// more tells that there are events between those that were looked at.
func (b before) more() bool { return b.looked >= 2*mostBefore }

// identity is on which server the outbox was last seen.
type identity struct {
	known, sameCluster, standby bool
	timeline, here              int
	seen                        time.Time
}

func (i identity) moved() bool { return i.known && (!i.sameCluster || i.timeline != i.here) }

// openWriter is a transaction that has drawn numbers and is open.
type openWriter struct {
	pid                      int
	role, application, state string
	since                    *time.Time // nil: this role may not see it
	prepared                 string
}

// facts gathers what there is to know.
func (o *Operator) facts(ctx context.Context, l *looking, id outbox.ID) (*facts, error) {
	f := &facts{id: id, now: l.now}
	event, err := l.event(ctx, id, false)
	if err != nil && !errors.Is(err, ErrNoEvent) {
		return nil, err
	}
	f.event, f.there = event, err == nil
	if f.letters, err = o.lettersOf(ctx, l, id); err != nil {
		return nil, err
	}
	if f.actions, err = l.actionsOf(ctx, id); err != nil {
		return nil, err
	}
	if f.writers, err = l.openWriters(ctx); err != nil {
		return nil, err
	}
	if !f.there {
		err := l.QueryRow(ctx, l.sql("retention_published")).Scan(&f.cutOff, &f.deleted)
		return f, err //nolint:wrapcheck // look says what it was
	}
	if f.holder, err = l.holder(ctx, event.Lane); err != nil {
		return nil, err
	}
	if f.over() {
		return f, nil
	}
	for _, gather := range []func(context.Context, *looking) error{
		f.gatherLane, f.gatherFleet, f.gatherIdentity, f.gatherPauses(o),
	} {
		if err := gather(ctx, l); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// over tells whether the event is in a state that no relay changes: what else there is plays no part.
func (f *facts) over() bool {
	switch f.event.State {
	case state.Published.String(), state.Discarded.String(), state.Dead.String(), state.DeadBlocking.String():
		return true
	}
	return false
}

// gatherLane reads what is before the event in its lane.
func (f *facts) gatherLane(ctx context.Context, l *looking) (err error) {
	e := f.event
	rows, err := l.Query(ctx, l.sql("line_held"), e.Lane, e.Namespace, e.AggregateType, e.AggregateID, e.Seq, mostHeads)
	if err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	var h head
	var kind int16
	if _, err = pgx.ForEachRow(rows, []any{
		&h.seq, &kind, &h.due, &h.since, &h.eventType, &h.id, &h.attempts, &h.err, &h.topic, &h.tenant,
	}, func() error {
		one := h
		one.kind = state.State(kind)
		f.heads = append(f.heads, one)
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	if err = l.QueryRow(ctx, l.sql("line_ready"), e.Lane, f.holder.Floor, e.Seq, e.Namespace, e.AggregateType,
		e.AggregateID, mostBefore).Scan(&f.before.looked, &f.before.ready, &f.before.oldest, &f.before.first,
		&f.before.types); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	first := e.Seq
	if f.before.first != nil {
		first = *f.before.first
	}
	err = l.QueryRow(ctx, l.sql("lane_published"), e.Lane, e.Seq, first, mostAround).Scan(&f.lastOut)
	return err //nolint:wrapcheck // look says what it was
}

// gatherFleet reads who is alive, who knows the types of the line, and which topics fail.
func (f *facts) gatherFleet(ctx context.Context, l *looking) error {
	rows, err := l.Query(ctx, l.sql("relays_alive"))
	if err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	var relay aliveRelay
	if _, err := pgx.ForEachRow(rows, []any{&relay.id, &relay.name, &relay.lanes}, func() error {
		f.alive = append(f.alive, relay)
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	types := append([]string{f.event.Type}, f.before.types...)
	for _, h := range f.heads {
		types = append(types, h.eventType)
	}
	slices.Sort(types)
	if rows, err = l.Query(ctx, l.sql("known"), slices.Compact(types)); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	var known knownType
	if _, err := pgx.ForEachRow(rows, []any{&known.relay, &known.eventType, &known.topic}, func() error {
		f.known = append(f.known, known)
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	if topic := f.topicOf(f.event.Type); topic != "" {
		f.event.Topic = topic // its holder's word counts
	}
	if rows, err = l.Query(ctx, l.sql("failing_topics"), []string{f.event.Topic}, mostTopicRows); err != nil {
		return err //nolint:wrapcheck // look says what it was
	}
	var failing failingTopic
	_, err = pgx.ForEachRow(rows, []any{
		&failing.relay, &failing.name, &failing.topic, &failing.since, &failing.err,
	}, func() error {
		f.failing = append(f.failing, failing)
		return nil
	})
	return err //nolint:wrapcheck // look says what it was
}

// gatherIdentity reads whether the outbox is where relays last saw it.
func (f *facts) gatherIdentity(ctx context.Context, l *looking) (err error) {
	f.identity, err = l.identity(ctx)
	return err
}

// identity is whether the outbox is where relays last saw it. A role that may not ask does without.
func (l *looking) identity(ctx context.Context) (is identity, err error) {
	nested, err := l.Begin(ctx) // an error of it must not end the whole transaction
	if err != nil {
		return is, err //nolint:wrapcheck // look says what it was
	}
	defer func() { _ = nested.Rollback(context.WithoutCancel(ctx)) }()
	err = nested.QueryRow(ctx, l.sql("identity")).Scan(&is.sameCluster, &is.timeline, &is.here, &is.seen, &is.standby)
	switch {
	case errors.Is(err, pgx.ErrNoRows), sqlstate.PermissionDenied(err):
		return identity{}, nil
	case err != nil:
		return identity{}, err //nolint:wrapcheck // look says what it was
	}
	is.known = true
	return is, nil
}

func (f *facts) gatherPauses(o *Operator) func(context.Context, *looking) error {
	return func(ctx context.Context, l *looking) (err error) {
		if f.pauses, err = o.pausesIn(ctx, l); err == nil {
			f.limits, err = o.limitsIn(ctx, l)
		}
		return err
	}
}

// openWriters lists the transactions that have drawn numbers.
func (l *looking) openWriters(ctx context.Context) ([]openWriter, error) {
	rows, err := l.Query(ctx, l.sql("writers"), l.table("outbox_events_seq_seq"))
	if err != nil {
		return nil, err //nolint:wrapcheck // look says what it was
	}
	var writers []openWriter
	var w openWriter
	_, err = pgx.ForEachRow(rows, []any{&w.pid, &w.role, &w.application, &w.state, &w.since, &w.prepared},
		func() error {
			writers = append(writers, w)
			return nil
		})
	return writers, err //nolint:wrapcheck // look says what it was
}

// topicOf is the topic of a type, by the word of the lane's holder if it has one.
func (f *facts) topicOf(eventType string) (topic string) {
	for _, k := range f.known {
		switch {
		case k.eventType != eventType:
		case k.relay == f.holder.id:
			return k.topic
		case topic == "":
			topic = k.topic
		}
	}
	return topic
}
