package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// differences compares a dead letter with its event, column by column, and lists what is not the same.
const differences = `SELECT coalesce(string_agg(c.name, ','), '') FROM {schema}.outbox_dlq d 
	JOIN {schema}.outbox_events e ON e.id = d.event_id
	LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq, LATERAL (VALUES
	('seq', d.event_seq::text, e.seq::text), ('created_at', d.created_at::text, e.created_at::text), 
	('attempts', d.attempts::text, e.attempt_count::text),
	('blocking', d.blocking::text, (h.kind IS NOT DISTINCT FROM 4)::text), ('namespace', d.namespace, e.namespace), 
	('tenant_id', d.tenant_id, e.tenant_id),
	('dedupe_key', d.dedupe_key, e.dedupe_key), ('event_type', d.event_type, e.event_type), 
	('aggregate_type', d.aggregate_type, e.aggregate_type),
	('aggregate_id', d.aggregate_id, e.aggregate_id), ('payload_json', d.payload_json::text, e.payload_json::text), 
	('headers', d.headers::text, e.headers::text),
	('detail', d.error_detail, e.last_error)
) c(name, letter, event) WHERE d.event_id = $1::text::uuid AND c.letter IS DISTINCT FROM c.event`

// letter returns reason, topic and detail of an event's only dead letter, after comparing it with the event.
func (p *env) letter(t testing.TB, id outbox.ID) (reason, topic, detail string) {
	t.Helper()
	if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq WHERE event_id = $1::text::uuid", id.String()); n != 1 {
		t.Fatalf("%d dead letters, want 1", n)
	}
	var different string
	if err := p.Pool.QueryRow(t.Context(), p.SQL(differences), id.String()).Scan(&different); err != nil {
		t.Fatal(err)
	}
	if different != "" {
		t.Errorf("the dead letter differs from its event in %s", different)
	}
	err := p.Pool.QueryRow(t.Context(), p.SQL(`SELECT error_reason, coalesce(topic, 'none'), error_detail 
		FROM {schema}.outbox_dlq
		WHERE event_id = $1::text::uuid AND failed_at BETWEEN clock_timestamp() - interval '5 min' AND clock_timestamp()`),
		id.String()).Scan(&reason, &topic, &detail)
	if err != nil {
		t.Fatal(err)
	}
	return reason, topic, detail
}

// RL-9, DL-1, DL-3, DL-4, S-9, D4: dead at the limit, with a letter that says everything; and dead it stays, also
// for a relay that would have tried more often.
func TestAtTheLimitAnEventIsDeadAndStaysSo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, message *publish.Message, try int) error {
			if strings.HasPrefix(message.AggregateID, "bad") || message.AggregateID == "good at the third try" && try < 3 {
				return &publish.RejectedError{Err: errHostile}
			}
			return nil
		}
		event := placed.New("bad", note{Text: "<ü>"})
		event.TenantID, event.DedupeKey, event.Headers = "acme", "acme/1", map[string]string{"b": "2", "a": "1"}
		own := p.emit(t, event)[0]
		contracts := p.emit(t, limited.New("bad too", note{}))[0]
		a := p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = 4 }))
		for id, attempts := range map[outbox.ID]int{own: 4, contracts: 2} {
			r := p.awaitState(t, id, deadBlocking)
			if r.attempts != attempts || r.publishedAt != nil || len(p.broker.of(id)) != attempts {
				t.Errorf("dead after %d tries, want %d: %+v", len(p.broker.of(id)), attempts, r)
			}
			reason, topic, detail := p.letter(t, id)
			if reason != "max_attempts" || topic != "orders" {
				t.Errorf("dead because of %s on %s", reason, topic)
			}
			wantReadable(t, detail)
		}
		if err := a.stop(t); err != nil {
			t.Error(err)
		}
		tries := p.broker.count()
		b := p.start(t, "b", with(func(s *relay.Settings) { s.MaxAttempts = 100 }))
		eventually.True(t, "all lanes", func() bool { return b.Stats().Lanes == 64 })
		p.emit(t, placed.New("good at the third try", note{}))
		// It was looked twice for retries that are due.
		eventually.True(t, "the next event", func() bool { return p.inState(t, published) == 1 })
		if n := p.broker.count(); n != tries+3 {
			t.Errorf("%d tries of dead events", n-tries-3)
		}
		if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); n != 2 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// P14, RL-9: what can never be published is dead at once, with the broker's words.
func TestWhatCanNeverBePublishedIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			return &publish.TerminalError{Reason: message.AggregateID, Err: errors.New("1048577 bytes, the limit is 1048576")}
		}
		p.start(t, "a")
		for given, want := range map[string]string{
			publish.ReasonTooLarge: "too_large", publish.ReasonRejected: "rejected", "made-up": "rejected",
		} {
			id := p.emit(t, placed.New(given, note{}))[0]
			p.awaitState(t, id, deadBlocking)
			reason, topic, detail := p.letter(t, id)
			if reason != want || topic != "orders" || !strings.Contains(detail, "the limit is 1048576") ||
				len(p.broker.of(id)) != 1 {
				t.Errorf("%s: dead because of %s on %s: %s", given, reason, topic, detail)
			}
		}
	})
}

// DL-2, D1, D2, S8: no event is dead without its letter. While letters cannot be written nothing dies, and later all of
// it does.
func TestADeathAndItsLetterAreOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.Exec(t, `CREATE FUNCTION {schema}.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the `+
			`disk is full'; END $$`)
		p.Exec(t,
			`CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.outbox_dlq FOR EACH ROW EXECUTE FUNCTION {schema}.full_disk()`)
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("never")}
		}
		var ids []outbox.ID
		for i := range 5 {
			ids = append(ids, p.emit(t, placed.New(fmt.Sprint(i), note{}))...)
		}
		p.start(t, "a")
		eventually.True(t, "two failed settles", func() bool {
			failed := 0
			for _, line := range p.logs.lines(t, "msg", "the database failed") {
				if line["call"] == "settle" {
					failed++
				}
			}
			if n := p.inState(t, dead) + p.inState(t, deadBlocking); n > 0 {
				t.Fatalf("%d events are dead without a letter", n)
			}
			return failed >= 2
		})
		p.Exec(t, "DROP TRIGGER full_disk ON {schema}.outbox_dlq")
		for _, id := range ids {
			p.awaitState(t, id, deadBlocking)
			p.letter(t, id)
		}
	})
}

// S-3, RL-10: one row that cannot be settled keeps no other from being settled.
func TestARowThatCannotBeSettledStopsNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const others = 20
		p.Exec(t, `CREATE FUNCTION {schema}.no_letter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not `+
			`this one'; END $$`)
		p.Exec(t, `CREATE TRIGGER no_letter BEFORE INSERT ON {schema}.outbox_dlq FOR EACH ROW WHEN (NEW.aggregate_id = `+
			`'bad') EXECUTE FUNCTION {schema}.no_letter()`)
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			if message.AggregateID == "bad" {
				return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("never")}
			}
			return nil
		}
		bad := p.emit(t, placed.New("bad", note{}))[0]
		p.start(t, "a")
		eventually.True(t, "a failed settle", func() bool { return len(p.logs.lines(t, "call", "settle")) > 0 })
		for i := range others {
			p.emit(t, placed.New(fmt.Sprint(i), note{}))
		}
		eventually.True(t, "the others", func() bool { return p.inState(t, published) == others })
		if r := p.row(t, bad); r.state == dead || r.state == deadBlocking {
			t.Errorf("dead without a letter: %+v", r)
		}
		p.Exec(t, "DROP TRIGGER no_letter ON {schema}.outbox_dlq")
		p.awaitState(t, bad, deadBlocking)
		p.letter(t, bad)
		if twice := p.broker.twice(); len(twice) > 0 {
			t.Errorf("%d events were delivered twice", len(twice))
		}
	})
}
