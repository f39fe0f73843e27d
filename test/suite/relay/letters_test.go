package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// A letterbox is an outbox with dead letters, and an operator who has the grants of that part and no others.
type letterbox struct {
	*env
	operator *operator.Operator
}

func onEachLetterbox(t *testing.T, test func(t *testing.T, b *letterbox)) {
	t.Helper()
	onEach(t, func(t *testing.T, p *env) {
		b := &letterbox{env: p}
		b.operator = b.as(t, "operator")
		test(t, b)
	})
}

// as is an operator whose role has this part and no other.
func (b *letterbox) as(t testing.TB, part string) *operator.Operator {
	t.Helper()
	role, _ := b.role(t, part)
	return operator.New(b.Open(t, pgtest.As(t, b.URL, role), "search_path", ""), b.Schema)
}

// put writes dead letters that died so many minutes ago, the first after the others, and answers their events.
func (b *letterbox) put(t testing.TB, count, minutes int,
	topic, eventType, aggregate, reason string,
) (events []outbox.ID) {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), b.SQL(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at,
			failed_at, attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, topic, error_reason,
			error_detail, payload_json)
		SELECT n, {schema}.outbox_uuid7(), now() - interval '9 days',
			now() - $2::int * interval '1 minute' - n * interval '1 microsecond', 3, true, 'default', $4,
			'order', $5, nullif($3, ''), $6, 'it was refused', '{"secret": 1}'
		  FROM generate_series(1, $1::int) n ORDER BY n RETURNING event_id::text`), count, minutes, topic, eventType,
		aggregate, reason)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		id, err := outbox.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

// all reads every page, and wants the pages to end.
func (b *letterbox) all(t testing.TB, filter operator.DeadLetterFilter) (letters []operator.DeadLetter, pages int) {
	t.Helper()
	for pages = 1; pages < 1_000; pages++ {
		page, err := b.operator.DeadLetters(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, page.Letters...)
		if page.Next == "" {
			return letters, pages
		}
		filter.After = page.Next
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

func eventsOf(letters []operator.DeadLetter) (events []outbox.ID) {
	for _, letter := range letters {
		events = append(events, letter.Event)
	}
	return events
}

// DL-1: what a relay gave up is there for a program to read, field by field, and with what was decided about it.
func TestADeadLetterIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		b.broker.answer = func(context.Context, *publish.Message, int) error {
			return &publish.TerminalError{Reason: publish.ReasonTooLarge, Err: errors.New("1048577 bytes, the limit is 1048576")}
		}
		event := placed.New("o-1", note{N: 7})
		event.TenantID, event.DedupeKey, event.Headers = "acme", "acme/1", map[string]string{"a": "1"}
		id := b.emit(t, event)[0]
		b.start(t, "a")
		eventually.True(t, "a dead letter", func() bool {
			return b.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq") == 1
		})
		letters, _ := b.all(t, operator.DeadLetterFilter{})
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		got := letters[0]
		var wantSeq int64
		var wantCreated, wantFailed time.Time
		var wantAttempts int
		var wantBlocking bool
		err := b.Pool.QueryRow(t.Context(),
			b.SQL(`SELECT event_seq, created_at, failed_at, attempts, blocking FROM {schema}.outbox_dlq`)).
			Scan(&wantSeq, &wantCreated, &wantFailed, &wantAttempts, &wantBlocking)
		if err != nil {
			t.Fatal(err)
		}
		if got.Event != id || got.Seq != wantSeq || got.ID < 1 || !got.CreatedAt.Equal(wantCreated) ||
			!got.FailedAt.Equal(wantFailed) ||
			got.Attempts != wantAttempts || got.Blocking != wantBlocking ||
			got.Namespace != "default" || got.Type != "order_placed" || got.AggregateType != "order" ||
			got.AggregateID != "o-1" || got.Tenant != "acme" ||
			got.Topic != "orders" || got.Reason != "too_large" || !strings.Contains(got.Detail, "the limit is 1048576") {
			t.Errorf("it is read as %+v", got)
		}
		if got.Payload != nil || got.Headers != nil || got.DedupeKey != "" || got.Resolved != "" || !got.ResolvedAt.IsZero() {
			t.Errorf("unasked for, or made up: %+v", got)
		}
		for _, verb := range []func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error){
			b.operator.Skip, b.operator.Discard,
		} {
			if _, err := verb(t.Context(), operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "a test order"},
				id); err != nil {
				t.Fatal(err)
			}
		}
		letters, _ = b.all(t, operator.DeadLetterFilter{Events: []outbox.ID{id}})
		if len(letters) != 1 || letters[0].Resolved != "discard" || letters[0].ResolvedBy != "ada" ||
			letters[0].ResolvedAt.IsZero() {
			t.Errorf("resolved it is %+v", letters)
		}
		owner, err := operator.New(b.Pool, b.Schema).DeadLetters(t.Context(), operator.DeadLetterFilter{Payloads: true})
		if err != nil || len(owner.Letters) != 1 {
			t.Fatalf("with payloads: %v, %+v", err, owner)
		}
		full := owner.Letters[0]
		if !strings.Contains(string(full.Payload), `"data":{"n":7}`) || string(full.Headers) != `{"a":"1"}` ||
			full.DedupeKey != "acme/1" {
			t.Errorf("the content is %s, %s, %s", full.Payload, full.Headers, full.DedupeKey)
		}
	})
}

// Each part of a filter leaves out what it should, and all of them together leave one.
func TestDeadLettersByFilter(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		began := time.Now()
		wanted := b.put(t, 1, 60, "orders", "order_placed", "o-1", "max_attempts")[0]
		b.Exec(t, "ALTER TABLE {schema}.outbox_dlq DISABLE TRIGGER outbox_dlq_append_only")
		b.Exec(t, "UPDATE {schema}.outbox_dlq SET tenant_id = 'acme', namespace = 'shop', aggregate_type = 'basket'")
		others := map[string]outbox.ID{
			"topic": b.put(t, 1, 60, "bills", "order_placed", "o-1", "max_attempts")[0],
			"type":  b.put(t, 1, 60, "", "order_noted", "o-1", "unknown_event_type")[0],
			"id":    b.put(t, 1, 60, "orders", "order_placed", "o-2", "max_attempts")[0],
			"old":   b.put(t, 1, 180, "orders", "order_placed", "o-1", "max_attempts")[0],
			"new":   b.put(t, 1, 5, "orders", "order_placed", "o-1", "max_attempts")[0],
		}
		hour := func(h int) time.Time { return began.Add(-time.Duration(h) * 30 * time.Minute) } // half hours ago
		everything := operator.DeadLetterFilter{
			Topic: "orders", Type: "order_placed", Namespace: "shop", AggregateType: "basket", AggregateID: "o-1",
			Tenant: "acme", Reason: "max_attempts",
			Since: hour(3), Before: hour(1), Events: []outbox.ID{others["old"], wanted, wanted, outbox.NewID()},
			Unresolved: true,
		}
		for name, c := range map[string]struct {
			filter operator.DeadLetterFilter
			want   []outbox.ID
		}{
			"nothing": {
				operator.DeadLetterFilter{},
				[]outbox.ID{others["new"], others["id"], others["type"], others["topic"], wanted, others["old"]},
			},
			"topic":     {operator.DeadLetterFilter{Topic: "bills"}, []outbox.ID{others["topic"]}},
			"type":      {operator.DeadLetterFilter{Type: "order_noted"}, []outbox.ID{others["type"]}},
			"reason":    {operator.DeadLetterFilter{Reason: "unknown_event_type"}, []outbox.ID{others["type"]}},
			"aggregate": {operator.DeadLetterFilter{AggregateType: "order", AggregateID: "o-2"}, []outbox.ID{others["id"]}},
			"namespace": {operator.DeadLetterFilter{Namespace: "shop"}, []outbox.ID{wanted}},
			"tenant":    {operator.DeadLetterFilter{Tenant: "acme"}, []outbox.ID{wanted}},
			"since":     {operator.DeadLetterFilter{Since: hour(1)}, []outbox.ID{others["new"]}},
			"before":    {operator.DeadLetterFilter{Before: hour(4)}, []outbox.ID{others["old"]}},
			"events": {
				operator.DeadLetterFilter{Events: []outbox.ID{others["old"], others["new"], others["old"]}},
				[]outbox.ID{others["new"], others["old"]},
			},
			"no event":  {operator.DeadLetterFilter{Events: []outbox.ID{outbox.NewID()}}, nil},
			"all of it": {everything, []outbox.ID{wanted}},
			"none left": {operator.DeadLetterFilter{Topic: "bills", Type: "order_noted"}, nil},
		} {
			letters, _ := b.all(t, c.filter)
			if !slices.Equal(eventsOf(letters), c.want) {
				t.Errorf("%s: %v\nwant %v", name, eventsOf(letters), c.want)
			}
		}
		// Decided: a skip leaves it open, the others do not.
		for i, verb := range []string{"skip", "redrive", "discard", "reissue"} {
			event := []outbox.ID{wanted, others["topic"], others["type"], others["id"]}[i]
			b.Exec(t, `INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor)
				SELECT gen_random_uuid(), $1, event_id, id, 'ada' FROM {schema}.outbox_dlq WHERE event_id = $2::text::uuid`, verb,
				event.String())
		}
		letters, _ := b.all(t, operator.DeadLetterFilter{Unresolved: true})
		if want := []outbox.ID{others["new"], wanted, others["old"]}; !slices.Equal(eventsOf(letters), want) {
			t.Errorf("unresolved: %v\nwant %v", eventsOf(letters), want)
		}
	})
}

// Every letter is on one page, however many die at one moment and whatever is written meanwhile.
func TestPagesOfDeadLettersHaveEachOnce(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		want := map[outbox.ID]bool{}
		for _, id := range append(b.put(t, 130, 60, "orders", "order_placed", "o-1", "max_attempts"),
			b.put(t, 20, 30, "orders", "order_placed", "o-1", "rejected")...) {
			want[id] = true
		}
		b.Exec(t, "ALTER TABLE {schema}.outbox_dlq DISABLE TRIGGER outbox_dlq_append_only")
		b.Exec(t, "UPDATE {schema}.outbox_dlq SET failed_at = date_trunc('minute', failed_at)")
		filter := operator.DeadLetterFilter{Limit: 7}
		seen, pages := map[outbox.ID]bool{}, 0
		for more := true; more && pages < 1_000; pages++ {
			page, err := b.operator.DeadLetters(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for _, letter := range page.Letters {
				if seen[letter.Event] || !want[letter.Event] {
					t.Errorf("%s comes twice, or is newer than the first page", letter.Event)
				}
				seen[letter.Event] = true
			}
			if pages == 3 {
				b.put(t, 5, 0, "orders", "order_placed", "o-1", "max_attempts")
			}
			filter.After, more = page.Next, page.Next != ""
		}
		if len(seen) != len(want) || pages != 22 {
			t.Errorf("%d letters on %d pages", len(seen), pages)
		}
		if letters, pages := b.all(t, operator.DeadLetterFilter{}); len(letters) != 155 || pages != 2 {
			t.Errorf("by default %d letters on %d pages", len(letters), pages)
		}
	})
}

// What is rare costs no page more than it may: the page says where to go on instead.
func TestARarePageLooksAtNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		rare := b.put(t, 1, 90, "bills", "order_billed", "o-1", "max_attempts")
		b.put(t, 20_000, 60, "orders", "order_placed", "o-1", "max_attempts")
		filter := operator.DeadLetterFilter{Topic: "bills"}
		for range 2 {
			page, err := b.operator.DeadLetters(t.Context(), filter)
			if err != nil || len(page.Letters) != 0 || page.Next == "" {
				t.Fatalf("%v, %+v", err, page)
			}
			filter.After = page.Next
		}
		last, err := b.operator.DeadLetters(t.Context(), filter)
		if err != nil || !slices.Equal(eventsOf(last.Letters), rare) || last.Next != "" {
			t.Errorf("%v, %+v", err, last)
		}
		if letters, pages := b.all(t, operator.DeadLetterFilter{Limit: operator.MaxLetters}); len(letters) != 20_001 ||
			pages != 21 {
			t.Errorf("%d letters on %d pages", len(letters), pages)
		}
		if letters, pages := b.all(t, operator.DeadLetterFilter{Topic: "bills", Events: rare}); len(letters) != 1 ||
			pages != 1 {
			t.Errorf("by its event %d letters on %d pages", len(letters), pages)
		}
	})
}

// Who may not read is told what to do, and nobody with the operator role reads payloads.
func TestDeadLettersAreReadByWhoMay(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		b.put(t, 1, 60, "orders", "order_placed", "o-1", "max_attempts")
		viewer := b.as(t, "viewer")
		if page, err := viewer.DeadLetters(t.Context(), operator.DeadLetterFilter{}); err != nil || len(page.Letters) != 1 {
			t.Errorf("a viewer: %v, %+v", err, page)
		}
		for name, c := range map[string]struct {
			operator *operator.Operator
			filter   operator.DeadLetterFilter
			want     string
		}{
			"an operator, with payloads": {
				b.operator,
				operator.DeadLetterFilter{Payloads: true},
				"ask without Payloads, or as a role that may read all of outbox_dlq",
			},
			"a producer": {b.as(t, "producer"), operator.DeadLetterFilter{}, "run `outboxctl grant operator <role>`, or viewer"},
		} {
			page, err := c.operator.DeadLetters(t.Context(), c.filter)
			if err == nil || !strings.HasPrefix(err.Error(), "operator: dead letters: ") ||
				!strings.Contains(err.Error(), c.want) || len(page.Letters) > 0 {
				t.Errorf("%s: %v, %d letters", name, err, len(page.Letters))
			}
		}
	})
}

// Everything that is wrong with a filter is said at once, before the database is asked.
func TestWhatIsWrongWithAFilter(t *testing.T) {
	t.Parallel()
	nobody := operator.New(nil, "")
	for want, filter := range map[string]operator.DeadLetterFilter{
		"the topic has more than 512 characters":               {Topic: strings.Repeat("x", 513)},
		"the type holds a control character":                   {Type: "a\x00"},
		"the aggregate's id holds a control character":         {AggregateID: "\xff"},
		`the reason "max_attempt" is none: use max_attempts, `: {Reason: "max_attempt"},
		"the limit is 1001, must be between 1 and 1000":        {Limit: operator.MaxLetters + 1},
		"the limit is -1, must be between 1 and 1000":          {Limit: -1},
		"the limit is 11, must be between 1 and 10":            {Limit: operator.MaxLettersWithPayload + 1, Payloads: true},
		"10001 events, the most is 10000":                      {Events: make([]outbox.ID, operator.MaxEvents+1)},
		"is not before the time until when":                    {Since: time.Unix(9, 0), Before: time.Unix(9, 0)},
		`"7" is no place at which a page ended`:                {After: "7"},
		`"7.0" is no place at which a page ended`:              {After: "7.0"},
		`"7.1 " is no place at which a page ended`:             {After: "7.1 "},
		`"-7.1" is no place at which a page ended`:             {After: "-7.1"},
		`"9223372036854775807.1" is no place`:                  {After: "9223372036854775807.1"},
	} {
		if _, err := nobody.DeadLetters(t.Context(), filter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	_, err := nobody.DeadLetters(t.Context(), operator.DeadLetterFilter{Reason: "x", Limit: -1, After: "y"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all of it: %v", err)
	}
}

// TestEveryReasonCanBeAskedFor: what the table takes, a filter does.
func TestEveryReasonCanBeAskedFor(t *testing.T) {
	t.Parallel()
	onEachLetterbox(t, func(t *testing.T, b *letterbox) {
		var constraint string
		err := b.Pool.QueryRow(t.Context(), "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = "+
			"'outbox_dlq_error_reason' AND connamespace = $1::text::regnamespace",
			b.SQL("{schema}")).Scan(&constraint)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, part := range strings.Split(constraint, "'") {
			if i%2 == 0 {
				continue
			}
			found++
			want := b.put(t, 1, 60, "orders", "order_placed", fmt.Sprint(i), part)
			if letters, _ := b.all(t, operator.DeadLetterFilter{Reason: part}); !slices.Equal(eventsOf(letters), want) {
				t.Errorf("%s: %d letters", part, len(letters))
			}
		}
		if found != 7 {
			t.Errorf("%d reasons in %s", found, constraint)
		}
	})
}
