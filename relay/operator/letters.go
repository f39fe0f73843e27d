package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
)

// The bounds of a page of dead letters.
const (
	// MaxLetters is the most that a page has, MaxLettersWithPayload where payloads are asked for: one can have 9 MiB.
	MaxLetters            = 1_000
	MaxLettersWithPayload = 10
	usualLetters          = 100
	// mostLooked is how many rows a page may cost. Two million dead letters are two hundred pages, whatever is asked for.
	mostLooked = 10_000
)

// reasons are what error_reason can be.
var reasons = []string{
	"max_attempts", "unknown_event_type", "invalid_payload", "aggregate_mismatch", publish.ReasonTooLarge,
	publish.ReasonRejected, "crash_suspect",
}

// A DeadLetterFilter says which dead letters a page has: those that meet all of it. The zero value asks for the newest
// 100, resolved or not.
type DeadLetterFilter struct {
	// Names, as the dead letter has them; empty: any. AggregateID is usually given with its AggregateType.
	Topic, Type, Namespace, AggregateType, AggregateID, Tenant string
	// Reason is the class of the error: max_attempts, unknown_event_type, invalid_payload, aggregate_mismatch,
	// too_large, rejected or crash_suspect. Empty: any.
	Reason string
	// Error is a piece of the error's text, in upper or lower case. Empty: any.
	Error string
	// Since and Before are when it died, by the database's clock: not before the one, and before the other. Zero: any.
	Since, Before time.Time
	// Events are ids of events, at most MaxEvents. Empty: any. One that died twice has two dead letters.
	Events []outbox.ID
	// Unresolved leaves out what somebody has redriven, discarded or reissued. A skip resolves nothing.
	Unresolved bool
	// Payloads asks for Payload, Headers and DedupeKey as well. They are left out unless asked for, because they may be
	// personal and large: whoever looks for the cause of a failure seldom needs them. The roles viewer and operator may
	// not read them, so it must be another, for instance the owner of the tables.
	Payloads bool
	// Limit is the most letters of the page. Defaults to 100, and to MaxLettersWithPayload with Payloads; at most
	// MaxLetters or MaxLettersWithPayload.
	Limit int
	// After is the Next of the page before, with the same filter otherwise. Empty: from the newest on.
	After string
}

// A DeadLetter is an event that will not be tried again by itself, and why.
type DeadLetter struct {
	// ID is the number of the dead letter, Event and Seq are the event's: the verbs of an [Operator] take Event.
	ID    int64     `json:"id"`
	Event outbox.ID `json:"event"`
	Seq   int64     `json:"seq"`
	// What the event is. Tenant is empty where it has none, Topic where its type was unknown.
	Namespace     string `json:"namespace"`
	Type          string `json:"type"`
	AggregateType string `json:"aggregateType"`
	AggregateID   string `json:"aggregateId"`
	Tenant        string `json:"tenant,omitempty"`
	Topic         string `json:"topic,omitempty"`
	// Reason is the class of the error, Detail its text, without secrets and payloads as far as they can be told.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	// Attempts is how many the event was charged with.
	Attempts int `json:"attempts"`
	// Blocking tells whether later events of its aggregate and topic had to wait when it died.
	Blocking bool `json:"blocking"`
	// CreatedAt is when the event's transaction began, FailedAt when it died.
	CreatedAt time.Time `json:"createdAt"`
	FailedAt  time.Time `json:"failedAt"`
	// Resolved is what was last decided about it: redrive, discard or reissue, by whom and when. Empty: nothing yet.
	Resolved   string    `json:"resolved,omitempty"`
	ResolvedBy string    `json:"resolvedBy,omitempty"`
	ResolvedAt time.Time `json:"resolvedAt,omitzero"`
	// Erased tells that hashes stand in the place of payload and headers: see [Operator.Erase].
	Erased bool `json:"erased,omitempty"`
	// Payload is what would have been published, Headers a JSON object or nil, DedupeKey the event's. All three only
	// where the filter asks for them.
	Payload   json.RawMessage `json:"payload,omitempty"`
	Headers   json.RawMessage `json:"headers,omitempty"`
	DedupeKey string          `json:"dedupeKey,omitempty"`
}

// A DeadLetterPage is some of what a filter asks for.
type DeadLetterPage struct {
	Letters []DeadLetter
	// Next is the After of the next page; empty: there is none. A page looks at 10,000 dead letters at the most, so one
	// with few letters, or none, can have a next one where what is asked for is rare.
	Next string
}

// DeadLetters reads dead letters, the newest first. It changes nothing, and the grants of the viewer role are
// enough, which the operator role has. Letters that are written meanwhile are on no later page: they are newer.
func (o *Operator) DeadLetters(ctx context.Context, filter DeadLetterFilter) (DeadLetterPage, error) {
	page, err := o.deadLetters(ctx, filter)
	switch {
	case sqlstate.PermissionDenied(err) && filter.Payloads:
		err = fmt.Errorf("%w; the roles viewer and operator do not see payloads, headers and dedupe keys: ask without "+
			"Payloads, "+
			"or as a role that may read all of outbox_dlq", err)
	case sqlstate.PermissionDenied(err):
		err = fmt.Errorf("%w; run `outboxctl grant operator <role>`, or viewer", err)
	}
	if err != nil {
		return DeadLetterPage{}, fmt.Errorf("operator: dead letters: %w", err)
	}
	return page, nil
}

func (o *Operator) deadLetters(ctx context.Context, filter DeadLetterFilter) (page DeadLetterPage, err error) {
	if err := filter.check(); err != nil {
		return page, notUnderstoodError{err}
	}
	limit := filter.limit()
	before, _ := filter.begin() // checked
	tx, err := o.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return page, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var looked int
	var last struct {
		at *time.Time
		id *int64
	}
	var found []int64
	err = tx.QueryRow(ctx, o.letters, filter.ids(), before.at, before.id, filter.since(), filter.Topic, filter.Type,
		filter.Namespace,
		filter.AggregateType, filter.AggregateID, filter.Tenant, filter.Reason, filter.Unresolved, mostLooked, limit,
		strings.ToLower(filter.Error),
	).Scan(&looked, &last.at, &last.id, &found)
	if err != nil {
		return page, err //nolint:wrapcheck // DeadLetters says what it was
	}
	if page.Letters, err = o.readLetters(ctx, tx, filter.Payloads, found); err != nil {
		return page, err
	}
	switch {
	case len(found) == limit && len(page.Letters) > 0:
		end := page.Letters[len(page.Letters)-1]
		page.Next = letterPosition{end.FailedAt, end.ID}.String()
	case looked == mostLooked:
		page.Next = letterPosition{*last.at, *last.id}.String()
	}
	return page, nil
}

// readLetters reads what was found.
func (o *Operator) readLetters(ctx context.Context, tx pgx.Tx, payloads bool, found []int64) ([]DeadLetter, error) {
	if len(found) == 0 {
		return nil, nil
	}
	content := "NULL, NULL, NULL"
	if payloads {
		content = "d.payload_json::text, d.headers::text, d.dedupe_key"
	}
	rows, err := tx.Query(ctx, strings.ReplaceAll(o.lettersRead, "{content}", content), found)
	if err != nil {
		return nil, err //nolint:wrapcheck // DeadLetters says what it was
	}
	letters := make([]DeadLetter, 0, len(found))
	var event string
	var resolvedAt *time.Time
	var payload, headers, key *string
	var d DeadLetter
	_, err = pgx.ForEachRow(rows, []any{
		&d.ID, &event, &d.Seq, &d.Namespace, &d.Type, &d.AggregateType, &d.AggregateID, &d.Tenant, &d.Topic,
		&d.Reason, &d.Detail,
		&d.Attempts, &d.Blocking, &d.CreatedAt, &d.FailedAt, &d.Resolved, &d.ResolvedBy, &resolvedAt,
		&d.Erased, &payload, &headers, &key,
	}, func() (err error) {
		letter := d
		letter.CreatedAt, letter.FailedAt = d.CreatedAt.UTC(), d.FailedAt.UTC()
		if letter.Event, err = outbox.ParseID(event); err != nil {
			return err
		}
		if resolvedAt != nil {
			letter.ResolvedAt = resolvedAt.UTC()
		}
		if payload != nil {
			letter.Payload = json.RawMessage(*payload)
		}
		if headers != nil {
			letter.Headers = json.RawMessage(*headers)
		}
		if key != nil {
			letter.DedupeKey = *key
		}
		letters = append(letters, letter)
		return nil
	})
	return letters, err //nolint:wrapcheck // DeadLetters says what it was
}

// check lists everything that is wrong with the filter.
func (f DeadLetterFilter) check() error {
	var problems []error
	invalid := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	for _, text := range []struct{ field, value string }{
		{"the topic", f.Topic},
		{"the type", f.Type},
		{"the namespace", f.Namespace},
		{"the aggregate's type", f.AggregateType},
		{"the aggregate's id", f.AggregateID},
		{"the tenant", f.Tenant},
		{"the error", f.Error},
	} {
		invalid(utf8.RuneCountInString(text.value) > longestName, "%s has more than %d characters", text.field, longestName)
		invalid(!utf8.ValidString(text.value) || strings.ContainsFunc(text.value, unicode.IsControl),
			"%s holds a control character or is not UTF-8", text.field)
	}
	invalid(f.Reason != "" && !slices.Contains(reasons, f.Reason), "the reason %.80q is none: use %s", f.Reason,
		strings.Join(reasons, ", "))
	invalid(f.Limit < 0 || f.Limit > f.most(), "the limit is %d, must be between 1 and %d", f.Limit, f.most())
	invalid(len(f.Events) > MaxEvents, "%d events, the most is %d", len(f.Events), MaxEvents)
	invalid(!f.Since.IsZero() && !f.Before.IsZero() && !f.Since.Before(f.Before),
		"the time since when is not before the time until when: no dead letter can be asked for")
	_, known := f.begin()
	invalid(!known, "%.80q is no place at which a page ended", f.After)
	return errors.Join(problems...)
}

func (f DeadLetterFilter) most() int {
	if f.Payloads {
		return MaxLettersWithPayload
	}
	return MaxLetters
}

func (f DeadLetterFilter) limit() int {
	if f.Limit == 0 {
		return min(usualLetters, f.most())
	}
	return f.Limit
}

// ids is nil for all.
func (f DeadLetterFilter) ids() []string {
	var ids []string
	for _, id := range f.Events {
		ids = append(ids, id.String())
	}
	return ids
}

func (f DeadLetterFilter) since() time.Time {
	if f.Since.IsZero() {
		return time.Unix(0, 0)
	}
	return f.Since
}

// letterPosition is where a page begins or ends. It has the time as well as the number, since letters are ordered by
// when they died.
type letterPosition struct {
	at time.Time
	id int64
}

func (p letterPosition) String() string { return fmt.Sprintf("%d.%d", p.at.UnixMicro(), p.id) }

// begin is where the page begins: at Before, or where the page before it ended. known: After is empty or a position.
func (f DeadLetterFilter) begin() (place letterPosition, known bool) {
	place = letterPosition{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 0}
	if !f.Before.IsZero() {
		place.at = f.Before
	}
	if f.After == "" {
		return place, true
	}
	var micros, id int64
	if _, err := fmt.Sscanf(f.After, "%d.%d", &micros, &id); err != nil || micros < 0 || id < 1 {
		return place, false
	}
	after := letterPosition{time.UnixMicro(micros), id}
	if after.String() != f.After || !after.at.Before(place.at) {
		return place, false
	}
	return after, true
}

// DeadLetters is the filter for dead letters. Fields that are about the event's own state it cannot have.
func (f Filter) DeadLetters() (DeadLetterFilter, error) {
	if len(f.Types) > 1 || len(f.States) > 0 || f.Created != (Period{}) || f.Published != (Period{}) ||
		f.Attempts.Set || len(f.Data) > 0 {
		return DeadLetterFilter{}, errors.New("filter: of dead letters it can have one type, aggregate, tenant, namespace, " +
			"topic, reason, error and ids; for state, created, published, attempts and data look at events")
	}
	letters := DeadLetterFilter{
		Topic: f.Topic, Namespace: f.Namespace, AggregateType: f.AggregateType, AggregateID: f.AggregateID,
		Tenant: f.Tenant, Reason: f.Reason, Error: f.Error, Events: f.IDs,
	}
	if len(f.Types) == 1 {
		letters.Type = f.Types[0]
	}
	return letters, nil
}
