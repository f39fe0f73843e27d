package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A Scope is what is paused and resumed: [AllScope], a [TopicScope] or a [TypeScope]. [RestoredScope] can be resumed
// only.
type Scope struct {
	Kind string `json:"scope"`          // all, topic, type, restored
	Name string `json:"name,omitempty"` // of the topic or the event type
}

// The scopes without a name.
var (
	// AllScope is all that relays publish.
	AllScope = Scope{Kind: string(core.ScopeAll)}
	// RestoredScope is the pause that relays make by themselves on a database that was restored or copied: see
	// relay.Relay.RestoreHold.
	RestoredScope = Scope{Kind: "restored"}
)

// TopicScope is what goes to one topic.
func TopicScope(name string) Scope { return Scope{Kind: string(core.ScopeTopic), Name: name} }

// TypeScope is events of one type. What is behind one of them in its aggregate and topic waits with it.
func TypeScope(name string) Scope { return Scope{Kind: string(core.ScopeType), Name: name} }

// String is the scope in words: "all", "topic orders".
func (s Scope) String() string { return strings.TrimSpace(s.Kind + " " + s.Name) }

// Covers tells whether events of the topic and type are in the scope.
func (s Scope) Covers(topic, eventType string) bool {
	return s == AllScope || s == TopicScope(topic) || s == TypeScope(eventType)
}

// ResumeWith are the words of outboxctl that resume it.
func (s Scope) ResumeWith() []string {
	switch {
	case s.Kind == string(core.ScopeTopic):
		return []string{"topics", "resume", s.Name}
	case s.Name == "":
		return []string{"resume", "--" + s.Kind}
	}
	return []string{"resume", "--" + s.Kind, s.Name}
}

// longestName is what outbox_pauses takes.
const longestName = 512

func (s Scope) check() error {
	switch {
	case s == AllScope || s == RestoredScope:
		return nil
	case s.Kind != string(core.ScopeTopic) && s.Kind != string(core.ScopeType):
		return errors.New("the scope is none of AllScope, TopicScope, TypeScope and RestoredScope")
	case s.Name == "" || utf8.RuneCountInString(s.Name) > longestName:
		return fmt.Errorf("the name of the %s must have 1 to %d characters", s.Kind, longestName)
	case !utf8.ValidString(s.Name) || strings.ContainsFunc(s.Name, unicode.IsControl):
		return fmt.Errorf("the name of the %s holds a control character or is not UTF-8", s.Kind)
	default:
		return nil
	}
}

// A Pause is what an operator has paused, and not resumed yet.
type Pause struct {
	Scope
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// String says all of it in one line: "topic orders is paused by ada since 2026-11-15T03:00:00Z: the broker is being
// moved".
func (p Pause) String() string {
	return fmt.Sprintf("%s is paused by %s since %s: %s", p.Scope, p.Actor, p.Since.UTC().Format(time.RFC3339), p.Reason)
}

// Pause has the whole fleet publish nothing of the scope, until [Operator.Resume]: the relays that run from within
// about a second on, and those that start later. What is in flight finishes; nothing is charged, killed or reordered.
// Where the scope is paused already it changes nothing, and the outcome is NotApplicable. The action must have a
// reason: somebody else will have to resume it.
func (o *Operator) Pause(ctx context.Context, action Action, scope Scope) (Outcome, error) {
	var problem error
	switch {
	case scope == RestoredScope:
		problem = errors.New("only relays pause a restored database")
	case strings.TrimSpace(action.Reason) == "":
		problem = errors.New("a reason is required: somebody else will have to know when to resume")
	}
	return o.order(ctx, "pause", o.pause, action, scope, problem)
}

// Resume lets the fleet go on with what was paused, from where it was. Where nothing of exactly this
// scope is paused it changes nothing, and the outcome is NotApplicable: to resume AllScope leaves a topic paused that
// was paused by itself.
func (o *Operator) Resume(ctx context.Context, action Action, scope Scope) (Outcome, error) {
	return o.order(ctx, "resume", o.resume, action, scope, nil)
}

// order calls one of the functions, in a transaction.
func (o *Operator) order(ctx context.Context, verb, statement string, action Action, scope Scope,
	problem error,
) (Outcome, error) {
	return o.decide(ctx, verb, errors.Join(action.check(0), scope.check(), problem),
		statement, action.Actor, action.Reason, scope.Kind, scope.Name, action.ID.String())
}

// decide calls a function that decides about no event, unless there is a problem with it.
func (o *Operator) decide(ctx context.Context, verb string, problem error, statement string,
	args ...any,
) (Outcome, error) {
	if problem != nil {
		return "", fmt.Errorf("operator: %s: %w", verb, notUnderstoodError{problem})
	}
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return "", fmt.Errorf("operator: %s: %w", verb, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var outcome Outcome
	if err := tx.QueryRow(ctx, statement, args...).Scan(&outcome); err != nil {
		return "", fmt.Errorf("operator: %s: %w", verb, err)
	}
	if err := tx.Commit(ctx); err != nil {
		return "", fmt.Errorf("operator: %s: %w; it may have happened: send the same action again", verb, err)
	}
	return outcome, nil
}

// Pauses lists what operators have paused, the oldest first.
func (o *Operator) Pauses(ctx context.Context) ([]Pause, error) {
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("operator: pauses: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	standing, err := o.pausesIn(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("operator: pauses: %w", err)
	}
	return standing, nil
}

// pausesIn lists them in a transaction that is there.
func (o *Operator) pausesIn(ctx context.Context, tx pgx.Tx) ([]Pause, error) {
	rows, err := tx.Query(ctx, o.pauses)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it was
	}
	var standing []Pause
	var p Pause
	_, err = pgx.ForEachRow(rows, []any{&p.Kind, &p.Name, &p.Actor, &p.Reason, &p.Since}, func() error {
		standing = append(standing, p)
		return nil
	})
	return standing, err //nolint:wrapcheck // the caller says what it was
}
