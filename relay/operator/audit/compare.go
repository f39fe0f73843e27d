package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
)

// audit is one comparison.
type audit struct {
	table  table
	config Config
	report Report
	// types are where types go; unread are other topics that relays have published to, also such as have ended.
	types  map[string]typeTopics
	unread []string
	// ended is up to when a relay was there that has ended.
	ended time.Time
	// begin is from when on messages were asked for.
	begin time.Time
	// held is from when on the broker shows each topic, where that is later than the begin.
	held       map[string]time.Time
	least, end outbox.ID
	messages   *merger
	expected   int64 // messages, as far as the broker can say
}

func (a *audit) run(ctx context.Context, broker Broker) (_ Report, err error) {
	if err := a.prepare(ctx, broker); err != nil {
		return a.report, err
	}
	spool := &spool{most: a.config.InMemory}
	defer func() { err = errors.Join(err, spool.close()) }()
	if err := a.read(ctx, broker, spool); err != nil {
		return a.report, err
	}
	if a.messages, err = spool.sorted(); err != nil {
		return a.report, err
	}
	// The snapshots of the table are younger than the last message: what was sent had committed before.
	if err := a.loose(ctx, a.least); err != nil {
		return a.report, err
	}
	if err := a.window(ctx); err != nil {
		return a.report, err
	}
	return a.report, a.loose(ctx, idtime.Last)
}

// prepare decides what is compared, once the broker has said what it can show.
func (a *audit) prepare(ctx context.Context, broker Broker) error {
	var now time.Time
	err := a.table.look(ctx, func(tx pgx.Tx, at time.Time) (err error) {
		now = at
		a.types, err = a.table.typeTopics(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	a.report.Topics = a.config.Topics
	if len(a.report.Topics) == 0 {
		return ErrNoTopics
	}
	a.report.From = now.Add(-a.config.Since).UTC()
	if !a.config.Until.IsZero() && !a.config.Until.After(a.report.From) {
		return ErrNoWindow
	}
	begin := a.report.From.Add(-a.config.Slack)
	extent, err := broker.Open(ctx, begin)
	if err != nil {
		return err
	}
	a.begin = begin
	if extent.FromNow {
		if a.begin, err = a.table.now(ctx); err != nil {
			return err
		}
	}
	a.least, a.end = idtime.Least(a.report.From), idtime.Last
	if !a.config.Until.IsZero() {
		a.end = idtime.Least(a.config.Until)
	}
	a.expected = extent.Messages
	return nil
}

// read takes in what the broker has.
func (a *audit) read(ctx context.Context, broker Broker, spool *spool) (err error) {
	meter := newMeter(a.config.Progress, "reading")
	a.held, err = broker.Read(ctx, func(ctx context.Context) (err error) {
		a.report.To, err = a.table.now(ctx)
		a.report.To = a.report.To.UTC()
		return err
	}, func(m Message) error {
		a.report.Messages++
		if m.Copy {
			a.report.Copies++
		}
		meter.at(a.report.Messages, a.expected)
		if m.Type == outbox.TestType && m.Seq == 0 { // of an event it would have a number
			a.report.Tests++
			return nil
		}
		if m.ID == (outbox.ID{}) {
			a.report.Unknown++
			at := m.At.UTC()
			return a.config.Found(Finding{
				Kind: Unknown, Type: m.Type, Topic: m.Topic, At: &at, Times: 1, Why: "it carries no id of an event",
			})
		}
		a.show(m)
		return spool.add(m)
	})
	a.report.Held = a.heldAll().UTC()
	if err != nil {
		return err
	}
	// Once more, for the relays that have come since.
	return a.table.look(ctx, func(tx pgx.Tx, _ time.Time) error { return a.know(ctx, tx) })
}

// heldAll is from when on the broker shows every topic.
func (a *audit) heldAll() time.Time {
	all := a.begin
	for _, since := range a.held {
		if since.After(all) {
			all = since
		}
	}
	return all
}

// comparable is from when on what was published to one of these topics must be there. One topic that was emptied, or is
// seldom used, says nothing about the others. Of an event of which nobody knows where it goes, all must show it.
func (a *audit) comparable(topics []string) time.Time {
	since := a.begin
	if !a.compared(topics) {
		since = a.report.Held
	}
	for _, topic := range topics {
		if a.held[topic].After(since) {
			since = a.held[topic]
		}
	}
	return since.Add(a.config.Slack)
}

// compared tells whether an event that is in none of these topics is in none at all: all of them are read.
func (a *audit) compared(topics []string) bool {
	return len(topics) > 0 && !slices.ContainsFunc(topics, a.notRead)
}

func (a *audit) notRead(topic string) bool { return !slices.Contains(a.report.Topics, topic) }

// event is a row of the table.
type event struct {
	id          outbox.ID
	seq         int64
	kind        string
	state       state.State
	publishedAt *time.Time
}

func (a *audit) events(ctx context.Context, tx pgx.Tx, statement string, args ...any) (events []event, err error) {
	rows, err := tx.Query(ctx, a.table.sql(statement), args...)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	var id string
	var e event
	var number int16
	_, err = pgx.ForEachRow(rows, []any{&id, &e.seq, &e.kind, &number, &e.publishedAt}, func() (err error) {
		row := e
		row.state = state.State(number)
		row.id, err = outbox.ParseID(id)
		events = append(events, row)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}

// loose looks at messages of events that were made outside of the window, up to an id: whether they are known, and
// whether they are there twice.
func (a *audit) loose(ctx context.Context, below outbox.ID) error {
	meter := newMeter(a.config.Progress, "comparing")
	for looked := int64(0); ; {
		found, err := a.upTo(below, mostLoose)
		if err != nil || len(found) == 0 {
			return err
		}
		ids := make([]string, len(found))
		for i, message := range found {
			ids[i] = message.id.String()
		}
		err = a.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
			events, err := a.events(ctx, tx, "by_id", ids)
			if err != nil {
				return err
			}
			return a.match(ctx, tx, events, found, false)
		})
		if err != nil {
			return err
		}
		looked += int64(len(found))
		meter.at(looked, 0)
	}
}

// upTo is what the broker has of the next events below an id, at most so many.
func (a *audit) upTo(below outbox.ID, most int) (found []there, err error) {
	for len(found) < most {
		id, more := a.messages.peek()
		if !more || bytes.Compare(id[:], below[:]) >= 0 {
			break
		}
		message, err := a.messages.next()
		if err != nil {
			return nil, err
		}
		found = append(found, message)
	}
	return found, nil
}

// window lays the messages of the window beside its events, page by page. Each page is one snapshot.
func (a *audit) window(ctx context.Context) error {
	meter := newMeter(a.config.Progress, "comparing")
	span := a.report.To.Sub(a.report.From)
	for from := a.least; bytes.Compare(from[:], a.end[:]) < 0; {
		err := a.table.look(ctx, func(tx pgx.Tx, _ time.Time) error {
			events, err := a.events(ctx, tx, "page", from.String(), a.end.String(), pageSize)
			if err != nil {
				return err
			}
			end := a.end
			if len(events) == pageSize {
				end = after(events[len(events)-1].id)
			}
			found, err := a.upTo(end, mostLoose+pageSize)
			if err != nil {
				return err
			}
			if len(found) == mostLoose+pageSize { // what comes then is looked at with the next page
				end = after(found[len(found)-1].id)
				events = slices.DeleteFunc(events, func(e event) bool { return bytes.Compare(e.id[:], end[:]) >= 0 })
			}
			from = end
			return a.match(ctx, tx, events, found, true)
		})
		if err != nil {
			return err
		}
		// How much is left, the time in the ids tells: nobody counts the events before.
		passed := max(idtime.Of(from).Sub(a.report.From), time.Millisecond)
		meter.at(a.report.Events, int64(float64(a.report.Events)*max(1, float64(span)/float64(passed))))
	}
	return nil
}

// after is the id that follows.
func after(id outbox.ID) outbox.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// match lays messages beside events; both are in the order of their ids. Of the window, an event that is not there is
// missing.
func (a *audit) match(ctx context.Context, tx pgx.Tx, events []event, found []there, window bool) error {
	var unknown []there
	for len(events) > 0 || len(found) > 0 {
		var order int
		switch {
		case len(found) == 0:
			order = -1
		case len(events) == 0:
			order = 1
		default:
			order = bytes.Compare(events[0].id[:], found[0].id[:])
		}
		var err error
		switch {
		case order > 0:
			unknown = append(unknown, found[0])
			found = found[1:]
		case order < 0:
			err = a.one(events[0], there{}, window)
			events = events[1:]
		default:
			err = a.one(events[0], found[0], window)
			events, found = events[1:], found[1:]
		}
		if err != nil {
			return err
		}
	}
	return a.unknown(ctx, tx, unknown)
}

// one compares an event with what the broker has of it.
func (a *audit) one(e event, found there, window bool) error {
	if window {
		a.report.Events++
	}
	if found.times > 1 {
		a.report.Twice++
		if err := a.config.Found(Finding{
			Kind: Twice, Event: &e.id, Seq: e.seq, Type: e.kind, Topic: found.topic, At: &found.at, Times: found.times,
			Why: "delivery is at least once: consumers must have taken one of them",
		}); err != nil {
			return err
		}
	}
	own, known := a.types[e.kind]
	// A copy that went to another topic than the event's own does not replace it.
	isOwn := func(topic string) bool { return !known || slices.Contains(own.topics, topic) }
	isThere := found.times > 0 || slices.ContainsFunc(found.copiedTo, isOwn)
	switch {
	case e.state != state.Published && found.times > 0:
		a.report.Unsettled++
	case e.state != state.Published || !window || e.publishedAt == nil || e.publishedAt.After(a.report.To):
	case isThere:
		a.report.Matched++
	case !a.config.AllTypes && !a.compared(own.topics):
		a.report.OtherTopics++
	case e.publishedAt.Before(a.comparable(own.topics)):
		a.report.Beyond++
	default:
		return a.missing(e, own)
	}
	return nil
}

func (a *audit) missing(e event, own typeTopics) error {
	a.report.Missing++
	at := e.publishedAt.UTC()
	finding := Finding{Kind: Missing, Event: &e.id, Seq: e.seq, Type: e.kind, At: &at}
	if len(own.topics) > 0 {
		finding.Topic = own.topics[0]
	}
	var unsure bool
	if finding.Why, unsure = a.why(e, own); unsure {
		a.report.Unsure++
	}
	return a.config.Found(finding)
}

// facts are what is known of a number.
type facts struct {
	prunedAt, cutOff *time.Time
	present, drawn   bool
}

// pruned tells whether retention has deleted the event of a message. A range of numbers has nearly all of them in the
// end, also those that somebody else's messages carry: only what is old enough was deleted. A stream that has another
// one as its source took a message later, so the time in the id counts as well. A copy is sent when somebody asks for
// it: it only has to be there before its event went.
func (f facts) pruned(message there, slack time.Duration) bool {
	if f.prunedAt == nil {
		return false
	}
	last := *f.prunedAt
	if message.times > 0 && f.cutOff != nil && f.cutOff.Before(last) {
		last = *f.cutOff
	}
	last = last.Add(slack)
	return !message.at.After(last) || !idtime.Of(message.id).After(last)
}

// unknown finds out what became of events that are there and not here.
func (a *audit) unknown(ctx context.Context, tx pgx.Tx, found []there) error {
	if len(found) == 0 {
		return nil
	}
	numbers := make([]int64, len(found))
	for i, message := range found {
		numbers[i] = message.seq
	}
	rows, err := tx.Query(ctx, a.table.sql("explain"), numbers)
	if err != nil {
		return fmt.Errorf("explain numbers: %w", err)
	}
	known := map[int64]facts{}
	var seq int64
	var f facts
	if _, err := pgx.ForEachRow(rows, []any{&seq, &f.prunedAt, &f.cutOff, &f.present, &f.drawn}, func() error {
		known[seq] = f
		return nil
	}); err != nil {
		return fmt.Errorf("explain numbers: %w", err)
	}
	for _, message := range found {
		finding := Finding{
			Kind: Unknown, Event: &message.id, Seq: message.seq, Type: message.kind, Topic: message.topic, At: &message.at,
			Times: message.times + message.copies,
		}
		switch f := known[message.seq]; {
		case message.seq == 0:
			finding.Why = "it carries no number of an event"
		case f.present:
			finding.Why = "another event has its number: it is of another outbox, or of this one before it was restored"
		case f.pruned(message, a.config.Slack):
			a.report.Pruned++
			continue
		case f.prunedAt != nil:
			finding.Why = "retention deleted the event with its number, which was older: it is of another outbox, or of this " +
				"one before it was restored, or retention deleted younger ones before"
		case f.drawn:
			finding.Why = "its number was drawn here and retention did not delete it: the event was deleted, or never committed"
		default:
			finding.Why = "its number was never drawn here: it is of another outbox, or of this one before it was restored"
		}
		a.report.Unknown++
		if err := a.config.Found(finding); err != nil {
			return err
		}
	}
	return nil
}
