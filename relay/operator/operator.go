// Package operator has what people look at and decide about the outbox: where events stand and why they wait, which
// dead or parked events are tried again, skipped or closed, and what the relays publish nothing of for now. It needs
// no relay that runs; [New] takes a connection alone.
package operator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// MaxEvents is how many events one action may name.
const MaxEvents = 10_000

// wakeTimeout bounds the wake-up behind an action. Without it a relay looks within about a second.
const wakeTimeout = 2 * time.Second

// An Operator does by hand what no relay does by itself: it decides about events that are dead, parked or
// blocked, and what the relays shall not publish for now. It changes an event only if it still is in a state that the
// verb starts from, and writes who did it and why in the same transaction. It needs no relay, holds no lane, and the
// grants of the operator role are enough: functions of the schema check, change and log (outbox_act, outbox_pause,
// outbox_resume, outbox_limit), and people with psql call the same ones. Of all actions on the events of an outbox one
// runs at a time, whoever begins them.
type Operator struct {
	db     DB
	schema string
	// window is how many events a search looks at that no index answers.
	window int
	act    string
	// What asks for copies of published events, and what ends that.
	redeliver, cancel string
	erase             string
	wake              string
	pause             string
	resume            string
	pauses            string
	limit             string
	// A page of dead letters is found by one statement and read by another.
	letters, lettersRead string
}

// DB is a *pgxpool.Pool or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// New returns the operator of the outbox in this schema; an empty one is the default.
func New(db DB, schema string) *Operator {
	if schema == "" {
		schema = outbox.DefaultSchema
	}
	quoted := pgx.Identifier{schema}.Sanitize()
	return &Operator{
		db: db, schema: schema, window: usualWindow,
		act: "SELECT event_id::text, outcome, was FROM " + quoted +
			".outbox_act($1::text, $2::text, $3::text, $4::text[]::uuid[], $5::text::uuid)",
		redeliver: "SELECT event_id::text, outcome, was FROM " + quoted + ".outbox_redeliver($1::text, $2::text, " +
			"$3::text[]::uuid[], nullif($4::text, ''), nullif($5::double precision, 0), $6::text::uuid)",
		cancel: "SELECT canceled, remaining FROM " + quoted +
			".outbox_cancel($1::text, $2::text, $3::text::uuid, $4::text::uuid)",
		erase: "SELECT event_id::text, outcome, was FROM " + quoted +
			".outbox_erase($1::text, $2::text, $3::text[]::uuid[], $4::text::uuid)",
		wake:    "SELECT " + quoted + ".outbox_wake()",
		pause:   "SELECT " + quoted + ".outbox_pause($1::text, $2::text, $3::text, $4::text, $5::text::uuid)",
		resume:  "SELECT " + quoted + ".outbox_resume($1::text, $2::text, $3::text, $4::text, $5::text::uuid)",
		pauses:  "SELECT scope, name, actor, reason, since FROM " + quoted + ".outbox_pauses ORDER BY since, scope, name",
		limit:   "SELECT " + quoted + ".outbox_limit($1::text, $2::text, $3::text, $4::double precision, $5::text::uuid)",
		letters: statementOf(schema, "letters"), lettersRead: statementOf(schema, "letters_read"),
	}
}

// An Action is one decision of one person.
type Action struct {
	// ID tells this decision from any other: make it with outbox.NewID and keep it when the request is sent
	// again. An action that changed something is over: sent again, whatever events it names, it changes nothing.
	ID outbox.ID
	// Actor is who decides, 1 to 256 characters.
	Actor string
	// Reason is why, at most 2,048 characters. A discard, an erasure and a pause must have one.
	Reason string
}

// OfCopies is the decision to end the copies that a job has asked for, where a is the one that ends the job. It has an
// id of its own, which is always the same for the same a: so both can be sent again.
func (a Action) OfCopies() Action {
	sum := sha256.Sum256(append([]byte("copies of "), a.ID[:]...))
	copy(a.ID[8:], sum[:8])
	a.ID[8] = a.ID[8]&0x3f | 0x80
	return a
}

// A Result says what an action came to for one event.
type Result struct {
	Event   outbox.ID
	Outcome Outcome
	// Was is the state in which the event was found, as docs/reference/schema.md calls it; empty when it was not.
	Was string
}

// Outcome is what an action came to.
type Outcome string

// The outcomes.
const (
	Done          Outcome = "done"
	DoneBefore    Outcome = "done before"    // by this same action
	NotApplicable Outcome = "not applicable" // the event is in no state for it, or the action was over
	NotFound      Outcome = "not found"
)

// verb is what an operator can do to events. From which states each starts and to which it leads, outbox_act knows.
type verb struct {
	name string
	// endsBlocks tells whether events may have waited behind what the verb takes away.
	endsBlocks bool
}

var (
	redrive = verb{name: "redrive"}
	skip    = verb{name: "skip", endsBlocks: true}
	release = verb{name: "release"}
	discard = verb{name: "discard", endsBlocks: true}
)

// Redrive lets dead events be tried again, now and with all their attempts, under the same id and in the
// old place: what waits behind a blocking one goes on waiting until it is published.
func (o *Operator) Redrive(ctx context.Context, action Action, events ...outbox.ID) ([]Result, error) {
	return o.do(ctx, redrive, action, events)
}

// Skip lets the followers of dead events go. The events stay dead, and can still be redriven or discarded.
func (o *Operator) Skip(ctx context.Context, action Action, events ...outbox.ID) ([]Result, error) {
	return o.do(ctx, skip, action, events)
}

// Release has parked events looked at again, in their old place. What waits behind a dead event is let go by
// [Operator.Skip] on that event.
func (o *Operator) Release(ctx context.Context, action Action, events ...outbox.ID) ([]Result, error) {
	return o.do(ctx, release, action, events)
}

// Discard closes dead events: they are never published, retention may delete them, and their followers go.
func (o *Operator) Discard(ctx context.Context, action Action, events ...outbox.ID) ([]Result, error) {
	if strings.TrimSpace(action.Reason) == "" {
		return nil, errors.New("operator: discard: a reason is required: nobody will see these events again")
	}
	return o.do(ctx, discard, action, events)
}

func (o *Operator) do(ctx context.Context, what verb, action Action, events []outbox.ID) ([]Result, error) {
	if err := action.check(len(events)); err != nil {
		return nil, fmt.Errorf("operator: %s: %w", what.name, err)
	}
	if len(events) == 0 {
		return nil, nil
	}
	results, err := o.once(ctx, what, action, events)
	if err != nil {
		return nil, fmt.Errorf("operator: %s: %w", what.name, err)
	}
	if again := decided(results); what.endsBlocks && len(again) > 0 {
		// While the action ran, a relay may have put an event behind the block: the action did not see that event, and
		// the relay still saw the block. The event would wait forever. So the action looks for followers a second time.
		// Not of what it was not applicable to: by now it may be, and the answer says that nothing was done.
		if _, err := o.once(ctx, what, action, again); err != nil {
			return nil, fmt.Errorf("operator: %s: it is done, but followers may still wait: send the same action again: %w",
				what.name, err)
		}
	}
	o.ring(ctx)
	return results, nil
}

// decided are the events to which the action was done, now or before.
func decided(results []Result) (events []outbox.ID) {
	for _, result := range results {
		if result.Outcome == Done || result.Outcome == DoneBefore {
			events = append(events, result.Event)
		}
	}
	return events
}

// check lists everything that is wrong with the action.
func (a Action) check(events int) error {
	var problems []error
	if a.ID == (outbox.ID{}) {
		problems = append(problems,
			errors.New("the action has no id: make one with outbox.NewID and keep it for when it is sent again"))
	}
	if a.Actor == "" {
		problems = append(problems, errors.New("the action has no actor"))
	}
	for _, text := range []struct {
		field, value string
		most         int
	}{{"actor", a.Actor, 256}, {"reason", a.Reason, 2048}} {
		if n := utf8.RuneCountInString(text.value); n > text.most {
			problems = append(problems, fmt.Errorf("the %s has %d characters, the limit is %d", text.field, n, text.most))
		}
		if !utf8.ValidString(text.value) || strings.ContainsFunc(text.value, unicode.IsControl) {
			problems = append(problems, fmt.Errorf("the %s holds a control character or is not UTF-8", text.field))
		}
	}
	if events > MaxEvents {
		problems = append(problems, fmt.Errorf("%d events, the limit of one action is %d", events, MaxEvents))
	}
	return notUnderstood(errors.Join(problems...))
}

// once runs the action in a transaction. Nobody is given up for a deadlock with it: see outbox_act.
func (o *Operator) once(ctx context.Context, what verb, action Action, events []outbox.ID) ([]Result, error) {
	// At any other level the function would not see what the same action did while it waited for its turn.
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	ids := make([]string, len(events))
	for i, id := range events {
		ids[i] = id.String()
	}
	crash.Point("redrive.before")
	rows, err := tx.Query(ctx, o.act, action.Actor, action.Reason, what.name, ids, action.ID.String())
	if err != nil {
		return nil, err //nolint:wrapcheck // do names the verb
	}
	results, err := read(rows, events, nil)
	if err != nil {
		return nil, err
	}
	crash.Point("redrive.before_commit")
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w; it may have happened: send the same action again", err)
	}
	crash.Point("redrive.after_commit")
	return results, nil
}

// read puts the answer in the order of the events. Where rows have more columns, they go to more, and each is told of.
func read(rows pgx.Rows, events []outbox.ID, each func(id string) error, more ...any) ([]Result, error) {
	found := make(map[string]Result, len(events))
	var id string
	var outcome Outcome
	var was *int16
	_, err := pgx.ForEachRow(rows, append([]any{&id, &outcome, &was}, more...), func() error {
		result := Result{Outcome: outcome}
		if was != nil {
			result.Was = state.State(*was).String()
		}
		found[id] = result
		if each == nil {
			return nil
		}
		return each(id)
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // do names the verb
	}
	results := make([]Result, len(events))
	for i, event := range events {
		results[i] = found[event.String()]
		results[i].Event = event
	}
	return results, nil
}

// ring wakes the relays. It is about latency, so its failure is nobody's.
func (o *Operator) ring(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTimeout)
	defer cancel()
	_, _ = o.db.Exec(ctx, o.wake)
}
