package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
)

// copied writes an event with its number, as logical replication does: the sequence does not hear of it.
func (p *env) copied(t *testing.T, seq int64, aggregateID string) {
	t.Helper()
	id := outbox.NewID().String()
	p.Exec(t, `INSERT INTO {schema}.outbox_events (seq, id, event_type, aggregate_type, aggregate_id, payload_json)
		OVERRIDING SYSTEM VALUE VALUES ($1, $2::text::uuid, 'order_placed', 'order', $3, $4::text::json)`, seq, id,
		aggregateID,
		`{"version":1,"eventId":"`+id+`","occurredAt":"2026-03-01T12:30:15Z","data":{"n":1}}`)
}

// toldFloor is a relay of the old server, copied with the table: it holds all lanes, and in its last beat it is so far.
func (p *env) toldFloor(t *testing.T, floor int64) {
	t.Helper()
	id := outbox.NewID().String()
	p.Exec(t, leases.Join, id, "copied", "1 hour")
	p.Exec(t, leases.Hold, id)
	p.Exec(t, `UPDATE {schema}.outbox_beats b SET lanes = r.lanes, floors = array_fill($2::bigint, ARRAY[64])
		FROM {schema}.outbox_relays r WHERE r.id = $1::text::uuid AND b.relay = r.id`, id, floor)
}

// wantsSequence waits until the relay is paused, checks that it does nothing, and returns the statement that it asks
// for.
func (p *env) wantsSequence(t *testing.T, r *run, wouldSend int64) (repair string) {
	t.Helper()
	published := func() int { return p.broker.countOf(r.name) }
	eventually.True(t, "a pause, or a publish", func() bool { return r.RestoreHold() != nil || published() > 0 })
	if n := published(); n > 0 {
		t.Fatalf("%d events were published, and the sequence is behind the table", n)
	}
	p.wantPaused(t, r, wouldSend)
	reason := r.RestoreHold().Reason
	_, repair, found := strings.Cut(reason, "; run ")
	if !found || !strings.Contains(repair, "SELECT setval(") {
		t.Fatalf("no statement to run: %s", reason)
	}
	return repair
}

// K7: a table that came without its sequence is not relayed: new events would have numbers below older ones. The pause
// says what to run, and ends when that was done.
func TestATableWithoutItsSequenceIsPaused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.copied(t, 500, "X") // an event that waited when the switch was made
		p.Exec(t, "UPDATE {schema}.outbox_lanes SET floor = 400")
		p.toldFloor(t, 400)
		fresh := p.emit(t, placed.New("X", note{N: 2}))[0]
		r := p.start(t, "a")
		repair := p.wantsSequence(t, r, 2)
		want := fmt.Sprintf(`UPDATE "%s"."outbox_lanes" SET owner = NULL, token = NULL, floor = 0; SELECT `+
			`setval('"%[1]s"."outbox_events_seq_seq"', 500); COMMIT`, p.Schema)
		if !strings.HasPrefix(repair, "BEGIN; LOCK TABLE ") || !strings.HasSuffix(repair, want) {
			t.Errorf("it wants %s, want %s", repair, want)
		}
		lines := p.logs.lines(t, "msg", "paused: the outbox came without its sequence")
		if len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0]["go_on"]), repair) {
			t.Errorf("the log says %v", lines)
		}
		numbered := "SELECT count(*) FROM {schema}.outbox_events WHERE id = $1::text::uuid AND seq = $2"
		if p.Count(t, numbered, fresh.String(), 1) != 1 {
			t.Error("the sequence was not behind")
		}
		p.Exec(t, repair)
		p.awaitPublished(t, 2)
		if r.RestoreHold() != nil {
			t.Errorf("it is paused still: %s", r.RestoreHold().Reason)
		}
		next := p.emit(t, placed.New("X", note{N: 3}))[0]
		p.awaitPublished(t, 3)
		if p.Count(t, numbered, next.String(), 501) != 1 {
			t.Error("the next event has another number than 501")
		}
	})
}

// K7: the next number is what counts, not the last: a sequence that has given out nothing would give out 1 again. And
// numbers count that only a lane's floor knows, or only a relay's last beat, since retention has removed the events.
func TestWhatASequenceIsBehindOf(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.copied(t, 1, "X")
		first := p.start(t, "a")
		p.Exec(t, p.wantsSequence(t, first, 1)) // it would give out 1 again
		p.awaitPublished(t, 1)
		if err := first.stop(t); err != nil {
			t.Error(err)
		}
		p.Exec(t, "UPDATE {schema}.outbox_lanes SET floor = 70 WHERE lane = 7")
		second := p.start(t, "b")
		p.Exec(t, p.wantsSequence(t, second, 0))
		p.emit(t, placed.New("X", note{}))
		p.awaitPublished(t, 2)
		if err := second.stop(t); err != nil {
			t.Error(err)
		}
		p.toldFloor(t, 90)
		p.Exec(t, p.wantsSequence(t, p.start(t, "c"), 0))
		p.emit(t, placed.New("X", note{}))
		p.awaitPublished(t, 3)
	})
}

// A table in order is not paused, whoever has drawn numbers that are not there: rolled back, or not committed yet.
func TestASequenceThatIsAheadIsInOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.Exec(t, "SELECT nextval('{schema}.outbox_events_seq_seq') FROM generate_series(1, 50)")
		p.emit(t, placed.New("X", note{}))
		p.start(t, "a")
		p.awaitPublished(t, 1)
		if p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE seq = 51") != 1 {
			t.Error("the event has another number than 51")
		}
	})
}
