package audit_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// An env is an outbox, and somebody who may look at it and no more.
type env struct {
	admin  *pgxpool.Pool
	viewer *pgxpool.Pool
	schema string
}

func onEachServer(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	serverstest.OnEach(t, func(t *testing.T, address string) { test(t, newEnv(t, address)) })
}

func newEnv(t *testing.T, address string) *env {
	t.Helper()
	e := &env{}
	e.admin, e.schema = relaytest.Database(t, address)
	role := "viewer_" + e.schema
	e.exec(t, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.admin.Exec(context.Background(), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	e.exec(t, "SELECT {schema}.outbox_grant('viewer', $1)", role)
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(role)
	if e.viewer, err = pgxpool.New(t.Context(), parsed.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.viewer.Close)
	return e
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := e.admin.Exec(t.Context(), e.sql(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// published writes an event as a relay leaves it, and returns the message that it sent.
func (e *env) published(t *testing.T, kind string) audit.Message {
	t.Helper()
	return e.event(t, kind, 6, outbox.NewID())
}

func (e *env) event(t *testing.T, kind string, state int, id outbox.ID) audit.Message {
	t.Helper()
	m := audit.Message{ID: id, Topic: "orders", Type: kind}
	err := e.admin.QueryRow(t.Context(), e.sql(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type,
			aggregate_id, payload_json, state, published_at)
		VALUES ($1::text::uuid, $2, 'order', '1', json_build_object('eventId', $1::text), $3::int,
			CASE $3::int WHEN 6 THEN clock_timestamp() END)
		RETURNING seq, clock_timestamp()`), m.ID.String(), kind, state).Scan(&m.Seq, &m.At)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// relay says where types go, as a relay that is there does.
func (e *env) relay(t *testing.T, topics map[string]string) (id string) {
	t.Helper()
	id = outbox.NewID().String()
	e.exec(t, "INSERT INTO {schema}.outbox_relays (id, token, name) VALUES ($1, $1, 'relay')", id)
	for kind, topic := range topics {
		e.exec(t, "INSERT INTO {schema}.outbox_known (relay, event_type, topic) VALUES ($1, $2, $3)", id, kind, topic)
	}
	return id
}

// held is a broker that holds these messages.
type held struct {
	messages []audit.Message
	extent   audit.Extent
	since    map[string]time.Time
	// meanwhile happens when the last message is read.
	meanwhile func()
}

func (h *held) Open(context.Context, time.Time) (audit.Extent, error) { return h.extent, nil }

func (h *held) Read(ctx context.Context, mark func(context.Context) error,
	each func(audit.Message) error,
) (map[string]time.Time, error) {
	if err := mark(ctx); err != nil {
		return nil, err
	}
	for _, message := range h.messages {
		if err := each(message); err != nil {
			return nil, err
		}
	}
	if h.meanwhile != nil {
		h.meanwhile()
	}
	return h.since, nil
}

// compare runs an audit, and returns what it found in words.
func (e *env) compare(t *testing.T, h *held, change ...func(*audit.Config)) (audit.Report, []string) {
	t.Helper()
	var found []string
	config := audit.Config{Schema: e.schema, Topics: []string{"orders"}, Found: func(f audit.Finding) error {
		text := f.Kind
		if f.Event != nil {
			text += " " + f.Event.String()
		}
		if f.Times > 0 {
			text += fmt.Sprintf(" x%d", f.Times)
		}
		found = append(found, text)
		return nil
	}}
	for _, change := range change {
		change(&config)
	}
	report, err := audit.Run(t.Context(), e.viewer, h, config)
	if err != nil {
		t.Fatal(err)
	}
	return report, found
}

func wantFound(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestWhatDiffersIsNamed: a loss, a stranger and a copy, and nothing else. So few messages fit into memory that most
// are on disk.
func TestWhatDiffersIsNamed(t *testing.T) {
	t.Parallel()
	for _, inMemory := range []int{0, 1, 7} {
		t.Run(fmt.Sprint(inMemory), func(t *testing.T) {
			t.Parallel()
			onEachServer(t, func(t *testing.T, e *env) {
				e.relay(t, map[string]string{"order_created": "orders", "order_billed": "bills"})
				small := func(c *audit.Config) { c.InMemory, c.Slack = inMemory, -1 }
				var sent []audit.Message
				for range 60 {
					sent = append(sent, e.published(t, "order_created"))
				}
				slices.Reverse(sent) // the order in which they come is no matter
				report, found := e.compare(t, &held{messages: sent}, small)
				wantFound(t, found)
				if !report.Clean() || report.Messages != 60 || report.Matched != 60 || report.Events != 60 {
					t.Errorf("a clean run: %+v", report)
				}
				lost, twice := sent[11], sent[22]
				stranger := audit.Message{ID: outbox.NewID(), Topic: "orders", Type: "order_created", At: time.Now()}
				broken := slices.Concat(sent[:11], sent[12:], []audit.Message{stranger, twice, twice})
				report, found = e.compare(t, &held{messages: broken}, small)
				wantFound(t, found, "missing "+lost.ID.String(), "unknown "+stranger.ID.String()+" x1",
					"twice "+twice.ID.String()+" x3")
				if report.Clean() || report.Missing != 1 || report.Unknown != 1 || report.Twice != 1 || report.Matched != 59 {
					t.Errorf("%+v", report)
				}
			})
		})
	}
}

// TestWhatIsNoDifference: copies that were asked for, events that go to other topics or are not settled, what the
// broker cannot show, and what retention has deleted.
func TestWhatIsNoDifference(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.relay(t, map[string]string{"order_created": "orders", "order_billed": "bills"})
		exact := func(c *audit.Config) { c.Slack = -1 }
		a, b := e.published(t, "order_created"), e.published(t, "order_created")
		copyOf := func(m audit.Message, topic string) audit.Message {
			m.Copy, m.Topic = true, topic
			return m
		}
		other, nobodys := e.published(t, "order_billed"), e.published(t, "order_forgotten")
		open := e.event(t, "order_created", 0, outbox.NewID())
		old := audit.Message{ID: outbox.ID{1, 2, 3, 4, 5, 6, 0x70, 8, 0x80}, Topic: "orders", Seq: 4711}
		e.exec(t, "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events) VALUES (4000, 5000, 3)")
		early := e.event(t, "order_created", 6, outbox.ID{1, 2, 3, 4, 5, 6, 0x70, 9, 0x80})
		report, found := e.compare(t, &held{messages: []audit.Message{
			a, copyOf(a, "orders"), copyOf(a, "orders-new"), copyOf(b, "orders"), open, old, early,
		}}, exact)
		wantFound(t, found)
		if report.Copies != 3 || report.Matched != 2 || report.OtherTopics != 2 || report.Unsettled != 1 ||
			report.Pruned != 1 {
			t.Errorf("%+v", report)
		}
		// a copy at another topic replaces nothing
		func() {
			_, found := e.compare(t, &held{messages: []audit.Message{a, copyOf(b, "orders-new")}}, exact)
			wantFound(t, found, "missing "+b.ID.String())
		}()
		// all types
		func() {
			_, found := e.compare(t, &held{messages: []audit.Message{a, b}}, exact,
				func(c *audit.Config) { c.AllTypes = true })
			wantFound(t, found, "missing "+other.ID.String(), "missing "+nobodys.ID.String())
		}()
		// from before the broker shows anything
		func() {
			report, found := e.compare(t, &held{since: map[string]time.Time{"orders": time.Now().Add(time.Minute)}}, exact)
			wantFound(t, found)
			if report.Beyond != 2 {
				t.Errorf("%+v", report)
			}
			report, found = e.compare(t, &held{extent: audit.Extent{FromNow: true}}, exact)
			wantFound(t, found)
			if report.Beyond != 2 {
				t.Errorf("%+v", report)
			}
		}()
		// shown twice by the broker
		func() {
			named, other := a, a
			named.Key, other.Key = "17", "18"
			_, found := e.compare(t, &held{messages: []audit.Message{named, b, named}}, exact)
			wantFound(t, found)
			_, found = e.compare(t, &held{messages: []audit.Message{named, b, named, other}}, exact)
			wantFound(t, found, "twice "+a.ID.String()+" x2")
		}()
		// asking whether the broker takes something
		func() {
			test := audit.Message{ID: outbox.NewID(), Topic: "orders", Type: outbox.TestType, At: time.Now()}
			report, found := e.compare(t, &held{messages: []audit.Message{a, b, test}}, exact)
			wantFound(t, found)
			if !report.Clean() || report.Tests != 1 {
				t.Errorf("%+v", report)
			}
			test.Seq = 4711 // that of an event
			_, found = e.compare(t, &held{messages: []audit.Message{a, b, test}}, exact)
			wantFound(t, found, "unknown "+test.ID.String()+" x1")
		}()
		// published meanwhile
		func() {
			_, found := e.compare(t, &held{messages: []audit.Message{a, b}, meanwhile: func() {
				e.published(t, "order_created")
			}}, exact)
			wantFound(t, found)
		}()
		// without an id
		func() {
			_, found := e.compare(t, &held{messages: []audit.Message{{Topic: "orders", At: time.Now()}}}, exact,
				func(c *audit.Config) { c.Until = time.Now().Add(-time.Hour) })
			wantFound(t, found, "unknown x1")
		}()
	})
}

// TestATopicThatShowsNothingExcusesItself: a loss in another topic is found all the same. Nobody knows where the events
// of some types go, and these may have been there.
func TestATopicThatShowsNothingExcusesItself(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.relay(t, map[string]string{"order_created": "orders", "order_billed": "bills"})
		lost := e.published(t, "order_created")
		e.published(t, "order_billed")
		e.published(t, "order_forgotten")
		empty := &held{since: map[string]time.Time{"bills": time.Now().Add(time.Minute)}}
		for all, beyond := range map[bool]int64{false: 1, true: 2} {
			report, found := e.compare(t, empty, func(c *audit.Config) {
				c.Topics, c.AllTypes, c.Slack = []string{"orders", "bills"}, all, -1
			})
			wantFound(t, found, "missing "+lost.ID.String())
			if report.Beyond != beyond {
				t.Errorf("all types %t: %+v", all, report)
			}
		}
	})
}

// TestWhyAMessageIsUnknown tells a deleted event from those of somebody else.
func TestWhyAMessageIsUnknown(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		deleted, stays := e.published(t, "order_created"), e.published(t, "order_created")
		e.exec(t, "DELETE FROM {schema}.outbox_events WHERE id = $1", deleted.ID.String())
		e.exec(t, "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events) VALUES (10, 20, 3)")
		e.exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 30)")
		why := map[outbox.ID]string{}
		for _, c := range []struct {
			seq  int64
			says string
		}{
			{deleted.Seq, "was deleted"},
			{stays.Seq, "another event has its number"},
			{25, "was deleted"}, // behind what retention took
			{99, "never drawn here"},
			{0, "no number"},
		} {
			m := audit.Message{ID: outbox.NewID(), Topic: "orders", Seq: c.seq, At: time.Now()}
			_, err := audit.Run(t.Context(), e.viewer, &held{messages: []audit.Message{m, stays}}, audit.Config{
				Schema: e.schema, Topics: []string{"orders"}, AllTypes: true,
				Found: func(f audit.Finding) error { why[*f.Event] = f.Why; return nil },
			})
			if err != nil || !strings.Contains(why[m.ID], c.says) {
				t.Errorf("number %d: %q, want %q (%v)", c.seq, why[m.ID], c.says, err)
			}
		}
	})
}

// TestWhatIsTooYoungWasNotPruned: a range has nearly all numbers in the end, also those of somebody else's messages.
func TestWhatIsTooYoungWasNotPruned(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.relay(t, map[string]string{"order_created": "orders"})
		now := time.Now()
		e.exec(t, "UPDATE {schema}.outbox_retention SET cut_off = $1 WHERE kind = 'published'", now.Add(-24*time.Hour))
		e.exec(t, "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events, changed_at) VALUES (1, 100, 100, $1)",
			now.Add(-time.Hour))
		id := func(age time.Duration) outbox.ID {
			id := outbox.NewID()
			binary.BigEndian.PutUint64(id[:8], uint64(now.Add(-age).UnixMilli())<<16|0x7000)
			return id
		}
		for name, c := range map[string]struct {
			made, came time.Duration // before now
			asked      bool
			pruned     bool
		}{
			"old":                                   {48 * time.Hour, 48 * time.Hour, false, true},
			"within the slack":                      {24*time.Hour - time.Minute, 24*time.Hour - time.Minute, false, true},
			"now":                                   {0, 0, false, false},
			"younger than the cut-off":              {23 * time.Hour, 23 * time.Hour, false, false},
			"old, and late by way of a source":      {48 * time.Hour, 0, false, true},
			"old, by a clock that was ahead":        {0, 48 * time.Hour, false, true},
			"a copy of what retention took since":   {2 * time.Hour, 2 * time.Hour, true, true},
			"a copy of what it cannot have touched": {0, 0, true, false},
		} {
			m := audit.Message{
				ID: id(c.made), Topic: "orders", Type: "order_created", Seq: 5, At: now.Add(-c.came), Copy: c.asked,
			}
			report, found := e.compare(t, &held{messages: []audit.Message{m}})
			if got := report.Pruned == 1 && len(found) == 0; got != c.pruned || !got && report.Unknown != 1 {
				t.Errorf("%s: %q, %+v", name, found, report)
			}
		}
	})
}

// TestNoTimeAtAll would find nothing, which is no answer.
func TestNoTimeAtAll(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.published(t, "order_created")
		_, err := audit.Run(t.Context(), e.viewer, &held{}, audit.Config{
			Schema: e.schema, Topics: []string{"orders"}, AllTypes: true, Until: time.Now().Add(-48 * time.Hour),
		})
		if !errors.Is(err, audit.ErrNoWindow) {
			t.Errorf("%v", err)
		}
	})
}

// TestEveryNumberIsAccountedFor: present, pruned, rolled back, in an open transaction, deleted by hand.
func TestEveryNumberIsAccountedFor(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		count := func(want audit.Numbers, gaps ...string) {
			t.Helper()
			var found []string
			got, err := audit.Sequence(t.Context(), e.viewer, audit.Config{Schema: e.schema, Found: func(f audit.Finding) error {
				found = append(found, fmt.Sprintf("%s %d-%d", f.Kind, f.Seq, f.Last))
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			wantFound(t, found, gaps...)
		}
		count(audit.Numbers{})
		for range 10 {
			e.published(t, "order_created")
		}
		count(audit.Numbers{Drawn: 10, Present: 10})
		e.exec(t, "DELETE FROM {schema}.outbox_events WHERE seq IN (1, 2, 4)")
		e.exec(t, "INSERT INTO {schema}.outbox_pruned (first_seq, last_seq, events) VALUES (1, 2, 2), (4, 4, 1)")
		count(audit.Numbers{Drawn: 10, Present: 7, Pruned: 3})
		e.exec(t, "DELETE FROM {schema}.outbox_events WHERE seq IN (6, 7, 9)")
		count(audit.Numbers{Drawn: 10, Present: 4, Pruned: 3, Unused: 3, Gaps: 2}, "gap 6-7", "gap 9-9")
		e.exec(t, "UPDATE {schema}.outbox_pruned SET last_seq = 7, events = 2 WHERE first_seq = 4")
		e.exec(t, "DELETE FROM {schema}.outbox_events WHERE seq = 5")
		count(audit.Numbers{Drawn: 10, Present: 3, Pruned: 4, Unused: 3, Within: 2, Gaps: 1}, "gap 9-9")
		tx, err := e.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := tx.Exec(t.Context(), e.sql("SELECT nextval('{schema}.outbox_events_seq_seq')")); err != nil {
			t.Fatal(err)
		}
		count(audit.Numbers{Drawn: 11, Present: 3, Pruned: 4, Unused: 4, Within: 2, Gaps: 2, Open: 1}, "gap 9-9", "gap 11-11")
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Over more than one step, and far beyond.
		e.exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 2000000)")
		e.published(t, "order_created")
		count(audit.Numbers{Drawn: 2_000_001, Present: 4, Pruned: 4, Unused: 1_999_993, Within: 2, Gaps: 2}, "gap 9-9",
			"gap 11-2000000")
	})
}
