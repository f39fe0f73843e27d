package pgstore_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// everything is the tables that a settle may change, for comparing.
func (w *world) everything(t testing.TB) []string {
	t.Helper()
	return slices.Concat(
		w.eventsAndHeld(t),
		w.rows(t, "SELECT * FROM {schema}.outbox_dlq ORDER BY id"),
		w.rows(t, "SELECT * FROM {schema}.outbox_lanes ORDER BY lane"),
		w.rows(t, "SELECT * FROM {schema}.outbox_markers ORDER BY lane"))
}

func (w *world) eventsAndHeld(t testing.TB) []string {
	t.Helper()
	return slices.Concat(
		w.rows(t, "SELECT * FROM {schema}.outbox_events ORDER BY seq"),
		w.rows(t, "SELECT * FROM {schema}.outbox_held ORDER BY seq"))
}

// oneOfEach is a settle with one event in every list, from the ready state.
func oneOfEach(t testing.TB, w *world, held holder) *core.Settle {
	t.Helper()
	add := func() core.Found { return w.found(t, w.add(t, "1", core.Ready)) }
	return &core.Settle{
		Owner:     held.Owner,
		Lanes:     held.lanes(),
		Published: []core.Found{add(), add()},
		Retry: []core.Retry{
			{Found: add(), Attempts: 3, Delay: time.Hour, Error: "no"}, {Found: add(), Attempts: 1, Delay: -time.Second},
		},
		Wait: []core.Found{add()},
		Park: []core.Park{{Found: add(), Error: "unknown type"}},
		Dead: []core.Death{
			{Found: add(), Blocking: true, Attempts: 10, Topic: "orders", Reason: "max_attempts", Detail: "often"},
			{Found: add(), Attempts: 0, Reason: "unknown_event_type"},
		},
		ClearNotes: held.lanes(),
	}
}

// TestSettle: every list does its change, once; settled again, nothing changes.
func TestSettle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		settle := oneOfEach(t, w, held)
		slices.Reverse(settle.Published)
		before := w.rows(t, "SELECT clock_timestamp()")[0]
		if answer := w.settle(t, settle); !answer.Applied || !slices.Equal(answer.Held, held.lanes()) {
			t.Fatalf("answered %+v", answer)
		}
		want := []string{
			"(1,6,0,t,)", "(2,6,0,t,)", "(3,1,3,f,no)", `(4,1,1,f,"")`, "(5,1,0,f,)", `(6,1,0,f,"unknown type")`,
			"(7,1,10,f,often)", "(8,5,0,f,unknown_event_type)",
		}
		got := w.rows(t, "SELECT seq, state, attempt_count, published_at IS NOT NULL, last_error "+
			"FROM {schema}.outbox_events ORDER BY seq")
		if !slices.Equal(got, want) {
			t.Errorf("events are\n%v, want\n%v", got, want)
		}
		// A retry is due after its delay, counted from a moment within the settle; a row is held so since then.
		want = []string{"(3,1,t,t,t)", "(4,1,t,t,t)", "(5,3,t,,t)", "(6,2,t,,t)", "(7,4,t,,t)"}
		got = w.rows(t, `SELECT h.seq, h.kind, h.since BETWEEN $1::text::timestamptz AND clock_timestamp(),
			h.due - CASE h.seq WHEN 3 THEN interval '1 hour' WHEN 4 THEN interval '-1 s' END
				BETWEEN $1::text::timestamptz AND clock_timestamp(),
			(h.namespace, h.event_type, h.aggregate_type, h.aggregate_id)
				= (e.namespace, e.event_type, e.aggregate_type, e.aggregate_id)
			FROM {schema}.outbox_held h JOIN {schema}.outbox_events e ON e.lane = h.lane AND e.seq = h.seq
			ORDER BY h.seq`, strings.Trim(before, `()"`))
		if !slices.Equal(got, want) {
			t.Errorf("held are\n%v, want\n%v", got, want)
		}
		letters := w.rows(t, `SELECT d.event_seq, d.blocking, d.attempts, d.topic, d.error_reason, d.error_detail,
			d.payload_json::text = e.payload_json::text AND d.headers IS NULL 
			AND (d.namespace, d.event_type, d.aggregate_type, d.aggregate_id, d.created_at)
			= (e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.created_at)
			FROM {schema}.outbox_dlq d JOIN {schema}.outbox_events e ON e.id = d.event_id AND e.seq = d.event_seq ORDER BY 1`)
		if !slices.Equal(letters, []string{"(7,t,10,orders,max_attempts,often,t)", `(8,f,0,,unknown_event_type,"",t)`}) {
			t.Errorf("dead letters are %v", letters)
		}
		settled := w.everything(t)
		if answer := w.settle(t, settle); !answer.Applied || !slices.Equal(w.everything(t), settled) {
			t.Errorf("settled again: %+v, and the tables are\n%s", answer, strings.Join(w.everything(t), "\n"))
		}
	})
}

// TestDeadLettersHaveTheHeaders: and all other facts of the event, byte for byte.
func TestDeadLettersHaveTheHeaders(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		id, held := outbox.NewID(), w.hold(t, "1")
		w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key, 
			payload_json, headers)
			VALUES ($1, 'order_created', 'order', '1', 'acme', 'acme/1', $2, '{"b":"2",  "a":"1"}')`, id.String(), payload(id))
		w.settle(t, &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(),
			Dead: []core.Death{{Found: w.found(t, id), Reason: "rejected", Detail: strings.Repeat("ü", 5000)}},
		})
		if n := w.count(t, `SELECT count(*) FROM {schema}.outbox_dlq WHERE headers::text = '{"b":"2",  "a":"1"}' 
			AND tenant_id = 'acme' AND dedupe_key = 'acme/1'
			AND payload_json::text = $1 AND error_detail = repeat('ü', 2048)`, payload(id)); n != 1 {
			t.Errorf("the dead letter is %v", w.rows(t, "SELECT * FROM {schema}.outbox_dlq"))
		}
	})
}

// TestSettleFromStates: each list changes the rows of its states and no others.
func TestSettleFromStates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for name, c := range map[string]struct {
			settle func(id outbox.ID) core.Settle
			from   []core.State
			to     core.State
		}{
			"published": {func(id outbox.ID) core.Settle {
				return core.Settle{Published: []core.Found{w.found(t, id)}}
			}, []core.State{0, 1, 3}, core.Published},
			"retry": {func(id outbox.ID) core.Settle {
				return core.Settle{Retry: []core.Retry{{Found: w.found(t, id)}}}
			}, []core.State{0, 1, 3}, core.Retrying},
			"wait": {func(id outbox.ID) core.Settle {
				return core.Settle{Wait: []core.Found{w.found(t, id)}}
			}, []core.State{0}, core.Waiting},
			"park": {func(id outbox.ID) core.Settle {
				return core.Settle{Park: []core.Park{{Found: w.found(t, id)}}}
			}, []core.State{0, 1, 3}, core.Parked},
			"dead": {func(id outbox.ID) core.Settle {
				return core.Settle{Dead: []core.Death{{Found: w.found(t, id), Reason: "rejected"}}}
			}, []core.State{0, 1, 2, 3}, core.Dead},
			"dead, blocks": {func(id outbox.ID) core.Settle {
				return core.Settle{Dead: []core.Death{{Found: w.found(t, id), Reason: "rejected", Blocking: true}}}
			}, []core.State{0, 1, 2, 3}, core.DeadBlocking},
		} {
			for from := core.Ready; from <= core.Discarded; from++ {
				id := w.add(t, "1", from)
				settle, want := c.settle(id), from
				settle.Owner, settle.Lanes = held.Owner, held.lanes()
				if slices.Contains(c.from, from) {
					want = c.to
				}
				if answer := w.settle(t, &settle); !answer.Applied || w.state(t, id) != want {
					t.Errorf("%s from %d: is %d, want %d", name, from, w.state(t, id), want)
				}
			}
		}
		if letters, dead := w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq"), 2*4; letters != dead {
			t.Errorf("%d dead letters of %d dead events", letters, dead)
		}
	})
}

// release is what an operator does who lets an event go again: held as it is or dead, it is due now.
func (w *world) release(t testing.TB, id outbox.ID) {
	t.Helper()
	w.exec(t, `WITH held AS (
			UPDATE {schema}.outbox_held h SET kind = 1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
			  FROM {schema}.outbox_events e WHERE e.id = $1 AND e.state = 1 AND h.lane = e.lane AND h.seq = e.seq
		), dead AS (
			UPDATE {schema}.outbox_events SET state = 1 WHERE id = $1 AND state = 5
			RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id
		)
		INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 1, clock_timestamp(), namespace, event_type, aggregate_type, aggregate_id FROM dead`, id.String())
	w.exec(t, "UPDATE {schema}.outbox_events SET attempt_count = 0 WHERE id = $1", id.String())
}

// TestWhatOperatorsUndidStaysUndone: a charge, a parking and a death that are settled again change nothing, once an
// operator has released or redriven the event, also if it was retrying or parked before and is so again.
func TestWhatOperatorsUndidStaysUndone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		park := func(from core.Found) *core.Settle {
			return &core.Settle{Owner: held.Owner, Lanes: held.lanes(), Park: []core.Park{{Found: from}}}
		}
		die := func(from core.Found) *core.Settle {
			return &core.Settle{
				Owner: held.Owner, Lanes: held.lanes(), Dead: []core.Death{{Found: from, Reason: "rejected"}},
			}
		}
		for name, made := range map[string]func(core.Found) *core.Settle{"parked": park, "dead": die} {
			for from := core.Ready; from <= core.Waiting; from++ {
				id := w.add(t, "1", from)
				for again := range 2 { // as it was, and retrying as the operator left it
					settle := made(w.found(t, id))
					parkedTwice := again == 0 && name == "parked" && from == core.Parked
					if done := w.settle(t, settle); len(done.Unchanged) != 0 && !parkedTwice {
						t.Errorf("%s from %d: left unchanged", name, from)
					}
					w.release(t, id)
					if late := w.settle(t, settle); !slices.Equal(late.Unchanged, []outbox.ID{id}) {
						t.Errorf("%s from %d, undone and settled again: %v of %s were left unchanged", name, from, late.Unchanged, id)
					}
					if state := w.state(t, id); state != core.Retrying {
						t.Errorf("%s from %d, undone and settled again: state %d", name, from, state)
					}
				}
			}
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); n != 2*4 {
			t.Errorf("%d dead letters of 8 deaths", n)
		}
		for _, from := range []core.State{core.Ready, core.Retrying, core.Waiting} {
			id := w.add(t, "1", from)
			late := &core.Settle{
				Owner: held.Owner, Lanes: held.lanes(), Retry: []core.Retry{{Found: w.found(t, id), Attempts: 3}},
			}
			if done := w.settle(t, late); len(done.Unchanged) != 0 {
				t.Errorf("retrying from %d: left unchanged", from)
			}
			w.release(t, id)
			if again := w.settle(t, late); !slices.Equal(again.Unchanged, []outbox.ID{id}) {
				t.Errorf("retrying from %d, redriven and settled again: %v of %s were left unchanged", from, again.Unchanged, id)
			}
			if n := w.count(t, "SELECT attempt_count FROM {schema}.outbox_events WHERE id = $1", id.String()); n != 0 {
				t.Errorf("retrying from %d, redriven and settled again: %d attempts", from, n)
			}
		}
		parked := w.add(t, "1", core.Parked)
		before := w.everything(t)
		if w.settle(t, park(w.found(t, parked))); !slices.Equal(w.everything(t), before) {
			t.Error("what was parked and is parked again is parked since another time")
		}
	})
}

// TestAStaleSettleChangesNothing: when one of its lanes is lost, and it says which are not.
func TestAStaleSettleChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		lost := w.hold(t, "2")
		settle := oneOfEach(t, w, held)
		settle.Lanes = []int16{lost.lane(), held.lane()}
		published := &core.Settle{Owner: held.Owner, Lanes: settle.Lanes, Published: settle.Published}
		check := func(when string, owner core.Owner, lanes, want []int16) {
			t.Helper()
			before := w.everything(t)
			for _, settle := range []*core.Settle{settle, published} {
				settle.Owner, settle.Lanes = owner, lanes
				if answer := w.settle(t, settle); answer.Applied || !slices.Equal(answer.Held, want) {
					t.Errorf("%s: answered %+v", when, answer)
				}
			}
			if after := w.everything(t); !slices.Equal(after, before) {
				t.Errorf("%s: changed to\n%s", when, strings.Join(after, "\n"))
			}
		}
		check("another's lane", held.Owner, settle.Lanes, held.lanes())
		check("another's token", core.Owner{Relay: held.Relay, Token: lost.Owner.Token}, held.lanes(), []int16{})
		check("an unknown relay", newOwner(), nil, []int16{})
		// A relay that expired and that nobody ended still holds its lanes.
		w.expire(t)
		published.Owner, published.Lanes = held.Owner, held.lanes()
		if answer := w.settle(t, published); !answer.Applied {
			t.Errorf("expired: answered %+v", answer)
		}
		published.Published = []core.Found{w.found(t, w.add(t, "1", core.Ready))}
		w.end(t)
		check("ended", held.Owner, held.lanes(), []int16{})
		check("ended, of no lanes", held.Owner, nil, []int16{})
	})
}

// settleIn runs the statement of a settle inside a transaction, to keep it open.
func (w *world) settleIn(t testing.TB, tx pgx.Tx, settle *core.Settle) (answer core.SettleAnswer) {
	t.Helper()
	statement, args := w.store.SettleStatement(settle)
	if err := tx.QueryRow(t.Context(), statement, args...).Scan(&answer.Applied, &answer.Held, nil, nil); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestASettleKeepsItsLane: while it runs, a take-over passes over its relay, and a beat does not wait.
func TestASettleKeepsItsLane(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for _, settle := range []*core.Settle{
			oneOfEach(t, w, held),
			{Owner: held.Owner, Lanes: held.lanes(), Published: []core.Found{w.found(t, w.add(t, "1", core.Ready))}},
		} {
			settle.ClearNotes = nil
			settling := w.beginAs(t)
			if answer := w.settleIn(t, settling, settle); !answer.Applied {
				t.Fatalf("answered %+v", answer)
			}
			if beat := w.beat(t, core.Heartbeat{Owner: held.Owner}); !slices.Equal(beat.Held, held.lanes()) {
				t.Errorf("beaten beside the settle: %+v", beat)
			}
			other := w.register(t)
			if ended := w.end(t); !slices.Equal(ended, []outbox.ID{other.Relay}) {
				t.Errorf("ended %v beside the settle, want all but its own", ended)
			}
			taken := w.acquire(t)
			if len(taken.taken) != 63 || slices.Contains(taken.lanes(), held.lane()) {
				t.Errorf("took %d lanes beside the settle, want all but its own", len(taken.taken))
			}
			if err := settling.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.store.Release(t.Context(), core.Release{Owner: taken.Owner, End: true}); err != nil {
				t.Fatal(err)
			}
		}
		if ended := w.end(t); !slices.Equal(ended, []outbox.ID{held.Relay}) {
			t.Errorf("ended %v after the settle", ended)
		}
	})
}

// TestASettleWaitsForATakeOver: issued while its relay is being ended, it waits and then changes nothing.
func TestASettleWaitsForATakeOver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, onlyPublished := range []bool{false, true} {
			held := w.hold(t, "1")
			settle := oneOfEach(t, w, held)
			if onlyPublished {
				settle = &core.Settle{Owner: held.Owner, Lanes: settle.Lanes, Published: settle.Published}
			}
			w.expire(t)
			before := w.eventsAndHeld(t)
			ending := w.beginAs(t)
			if err := w.endIn(t.Context(), ending); err != nil {
				t.Fatal(err)
			}
			late := make(chan core.SettleAnswer, 1)
			go func() { late <- w.settle(t, settle) }()
			w.blocked(t, ending.Conn().PgConn().PID(), 1)
			if err := ending.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if answer := receive(t, "the settle of the old holder", late); answer.Applied || len(answer.Held) != 0 {
				t.Errorf("the settle of the old holder answered %+v", answer)
			}
			if after := w.eventsAndHeld(t); !slices.Equal(after, before) {
				t.Errorf("the settle of the old holder changed events to\n%s", strings.Join(after, "\n"))
			}
		}
	})
}

// TestFaultD2: where the dead letter cannot be written the event stays what it was, and so does the rest.
func TestFaultD2(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		settle := oneOfEach(t, w, w.hold(t, "1"))
		w.exec(t, `CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk `+
			`full' USING ERRCODE = 'disk_full'; END $$`)
		w.exec(t, "CREATE TRIGGER fails BEFORE INSERT ON {schema}.outbox_dlq FOR EACH ROW EXECUTE FUNCTION {schema}.full()")
		before := w.everything(t)
		if answer, err := w.store.Settle(t.Context(), settle); err == nil || !strings.Contains(err.Error(), "disk full") ||
			answer.Applied {
			t.Errorf("answered %+v, %v", answer, err)
		}
		if after := w.everything(t); !slices.Equal(after, before) {
			t.Errorf("changed to\n%s", strings.Join(after, "\n"))
		}
		w.exec(t, "DROP TRIGGER fails ON {schema}.outbox_dlq")
		if answer := w.settle(t, settle); !answer.Applied || w.state(t, settle.Dead[0].ID) != core.DeadBlocking {
			t.Errorf("afterwards: %+v", answer)
		}
	})
}

// TestSettlesUnderFire: the server ends the sessions of settles while they run. Each event is in one whole
// state: dead with one letter, or as it was, and sent again it is settled.
func TestSettlesUnderFire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const settles, least = 500, 10
		held := w.hold(t, "1")
		var passed atomic.Int64 // settles that were answered
		stop, ended := make(chan struct{}), make(chan int, 1)
		go func() { ended <- w.kill(t.Context(), &passed, stop) }()
		var dead []core.Death
		broken := 0
		// Until the dice have met both.
		for began := time.Now(); len(dead) < settles || broken < least || passed.Load() < least; {
			if time.Since(began) > patience && len(dead) >= settles {
				t.Errorf("%d settles failed and %d were answered: this test does not test", broken, passed.Load())
				break
			}
			death := core.Death{Found: w.found(t, w.add(t, "1", core.Ready)), Reason: "rejected", Blocking: true}
			dead = append(dead, death)
			if _, err := w.store.Settle(t.Context(), &core.Settle{
				Owner: held.Owner, Lanes: held.lanes(), Dead: []core.Death{death},
			}); err != nil {
				broken++
			} else {
				passed.Add(1)
			}
		}
		close(stop)
		kills := receive(t, "whoever ends sessions", ended)
		const half = `SELECT count(*) FROM {schema}.outbox_events e
			LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
			WHERE (e.state = 1) <> (h.kind IS NOT DISTINCT FROM 4)
			   OR (e.state = 1) <> ((SELECT count(*) FROM {schema}.outbox_dlq d WHERE d.event_id = e.id) = 1)`
		if n := w.count(t, half); n != 0 {
			t.Errorf("%d events are settled by half", n)
		}
		applied := w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq")
		t.Logf("%d of %d settles failed under %d kills, %d were applied", broken, len(dead), kills, applied)
		w.pool.Reset() // the last kill may have met a connection on its way back
		if answer := w.settle(t, &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(), Dead: dead,
		}); !answer.Applied {
			t.Errorf("sent again: %+v", answer)
		}
		if n, letters := w.count(t, half), w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); n != 0 ||
			letters != len(dead) {
			t.Errorf("sent again: %d by half, %d dead letters", n, letters)
		}
	})
}

// kill ends the sessions of the store that do something, and again when some settles have passed since: by the clock it
// would be none of them or all, as fast as the machine is.
func (w *world) kill(ctx context.Context, passed *atomic.Int64, stop <-chan struct{}) (kills int) {
	const between = 4
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for next := int64(0); ; {
		select {
		case <-stop:
			return kills
		case <-ctx.Done():
			return kills
		case <-look.C:
		}
		if passed.Load() < next {
			continue
		}
		var n int
		err := w.owner.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE usename = $1 AND state = 'active'`, w.role).Scan(&n)
		if err == nil && n > 0 {
			kills, next = kills+n, passed.Load()+between
		}
	}
}

// TestReadable: what the columns for errors take, and no settle fails because of.
func TestReadable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a\x00b": "ab", "\xff": "\uFFFD",
		strings.Repeat("ü", 2048):  strings.Repeat("ü", 2048),
		strings.Repeat("ü", 2049):  strings.Repeat("ü", 2048),
		strings.Repeat("x", 1<<20): strings.Repeat("x", 2048),
	} {
		if got := pgstore.Readable(text); got != want {
			t.Errorf("%.20q: %d characters, want %d", text, len([]rune(got)), len([]rune(want)))
		}
	}
}
