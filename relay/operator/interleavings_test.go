package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// What can happen where a verb meets a settle of the same events. Each interleaving is played with the settle that we
// have and with one that is wrong, and that one must be seen to fail: otherwise the interleaving shows nothing.

func deadlocked(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == "40P01"
}

const (
	lockEvent = "SELECT FROM {schema}.outbox_events WHERE id = $1 FOR UPDATE"
	lockHeld  = `SELECT FROM {schema}.outbox_held h JOIN {schema}.outbox_events e ON e.lane = h.lane AND e.seq = h.seq
		WHERE e.id = $1 FOR UPDATE`
)

// H1, H3: a settle has one event and waits for the next, when a verb comes for both.
func TestAVerbBehindASettleWaitsForIt(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.relay()
		play := func(aggregate, statement string) (settled, done, []outbox.ID) {
			ids := []outbox.ID{
				e.event(aggregate, "order_created", state.DeadBlocking), e.event(aggregate, "order_paid", state.DeadBlocking),
			}
			gate, settler, person := e.connect(false), e.connect(false), e.connect(true)
			held := gate.hold(lockEvent, ids[1].String())
			settling := settler.settle(statement, e.read(relay, ids...), state.Published)
			settler.waitsFor(gate)
			acting := person.do("discard", ids...)
			person.waitsFor(settler)
			if err := held.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			return receive(t, settling), receive(t, acting), ids
		}
		end, acted, ids := play("a", settle)
		if end.err != nil || end.rows != len(ids) || acted.err != nil {
			t.Fatalf("the settle changed %d rows, %v; the verb: %v", end.rows, end.err, acted.err)
		}
		for i, id := range ids {
			if got := e.row(id); got != "6 attempts=4" || acted.results[i].Outcome != operator.NotApplicable ||
				acted.results[i].Was != "published" {
				t.Errorf("the row is %q, and the verb says %+v", got, acted.results[i])
			}
		}
		if end, acted, _ := play("b", eventsFirst); !deadlocked(end.err) && !deadlocked(acted.err) {
			t.Errorf("events first, and nobody is deadlocked: %v, %v", end.err, acted.err)
		}
	})
}

// H1, H3 the other way round: a verb has one event and waits for the next, when a settle comes for both, in its own
// order.
func TestASettleBehindAVerbWaitsForIt(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.relay()
		ids := []outbox.ID{e.event("a", "order_created", state.DeadBlocking), e.event("a", "order_paid", state.DeadBlocking)}
		gate, settler, person := e.connect(false), e.connect(false), e.connect(true)
		batch := e.read(relay, ids[1], ids[0])
		held := gate.hold(lockHeld, ids[1].String())
		acting := person.do("redrive", ids...)
		person.waitsFor(gate)
		settling := settler.settle(settle, batch, state.Published)
		settler.waitsFor(person)
		if err := held.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		end, acted := receive(t, settling), receive(t, acting)
		if end.err != nil || end.rows != 0 || acted.err != nil { // what it has read is over
			t.Fatalf("the settle changed %d rows, %v; the verb: %v", end.rows, end.err, acted.err)
		}
		for i, id := range ids {
			if got := e.row(id); got != "1 attempts=0 due" || acted.results[i].Outcome != operator.Done {
				t.Errorf("the row is %q, and the verb says %+v", got, acted.results[i])
			}
		}
	})
}

// H2, H3c: while a settle waits, an event that it is about is skipped and redriven. What the settle has read is over:
// another row holds the event now.
func TestASettleDoesNotMissWhatHappenedWhileItWaited(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.relay()
		play := func(aggregate, statement string) (end settled, id outbox.ID) {
			other := e.event(aggregate, "order_created", state.Retrying) // has a lower number, so it is locked first
			id = e.event(aggregate, "order_paid", state.DeadBlocking)
			gate, settler := e.connect(false), e.connect(false)
			held := gate.hold(lockHeld, other.String())
			settling := settler.settle(statement, e.read(relay, other, id), state.Published)
			settler.waitsFor(gate)
			for _, do := range []verb{e.operator.Skip, e.operator.Redrive} {
				if result := e.do(do, action(), id); result.Outcome != operator.Done {
					t.Fatalf("%+v", result)
				}
			}
			if err := held.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			return receive(t, settling), id
		}
		if end, id := play("a", settle); end.err != nil || end.rows != 1 || e.row(id) != "1 attempts=0 due" {
			t.Errorf("the settle changed %d rows, %v, and the event is %q", end.rows, end.err, e.row(id))
		}
		if end, id := play("b", eventsFirst); end.err != nil || e.row(id) != "event 6, held 1 attempts=1 due" {
			t.Errorf("events first, and it is not published and held: %q, %v", e.row(id), end.err)
		}
	})
}

// H3b: a settle that is sent again, because its answer was lost, comes after the event was redriven.
func TestASettleThatIsSentAgainChangesNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.relay()
		play := func(aggregate, statement string) (again settled, id outbox.ID) {
			id = e.event(aggregate, "order_created", state.Retrying)
			settler, batch := e.connect(false), e.read(relay, id)
			if end := receive(t, settler.settle(statement, batch, state.DeadBlocking)); end.err != nil || end.rows != 1 {
				t.Fatalf("the settle changed %d rows, %v", end.rows, end.err)
			}
			if result := e.do(e.operator.Redrive, action(), id); result.Outcome != operator.Done {
				t.Fatalf("%+v", result)
			}
			return receive(t, settler.settle(statement, batch, state.DeadBlocking)), id
		}
		if end, id := play("a", settle); end.err != nil || end.rows != 0 || e.row(id) != "1 attempts=0 due" {
			t.Errorf("again, the settle changed %d rows, %v, and the event is %q", end.rows, end.err, e.row(id))
		}
		if end, id := play("b", eventsFirst); end.err != nil || end.rows != 1 || e.row(id) != "4 attempts=1 due" {
			t.Errorf("events first, and what was redriven is not dead again: %q, %v", e.row(id), end.err)
		}
	})
}

// Verbs come one after the other, and each goes on from what the ones before have made of the event.
func TestAVerbGoesOnFromWhatTheEventHasBecome(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, c := range []struct {
			verbs     []string
			want, row string // of the last
		}{
			{[]string{"skip", "redrive"}, "done, was dead", "1 attempts=0 due"},
			{[]string{"skip", "discard"}, "done, was dead", "7 attempts=3"},
			{[]string{"discard", "redrive"}, "not applicable, was discarded", "7 attempts=3"},
			{[]string{"redrive", "skip"}, "not applicable, was retrying", "1 attempts=0 due"},
			{[]string{"skip", "redrive", "discard"}, "not applicable, was retrying", "1 attempts=0 due"},
		} {
			name := fmt.Sprint(c.verbs)
			id := e.event(name, "order_created", state.DeadBlocking)
			before := e.connect(false)
			gate := before.hold(lockHeld, id.String())
			var last <-chan done
			for _, what := range c.verbs {
				person := e.connect(true)
				last = person.do(what, id)
				person.waitsFor(before)
				before = person
			}
			if err := gate.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			acted := receive(t, last)
			if acted.err != nil {
				t.Fatalf("%s: %v", name, acted.err)
			}
			got := fmt.Sprintf("%s, was %s", acted.results[0].Outcome, acted.results[0].Was)
			if row := e.row(id); got != c.want || row != c.row {
				t.Errorf("%s: %s, and the row is %q; want %s and %q", name, got, row, c.want, c.row)
			}
		}
	})
}

// A relay may change what is parked while somebody releases it.
func TestAReleaseBehindASettleFindsWhatItHasMade(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		relay := e.relay()
		for becomes, was := range map[state.State]string{
			state.Published: "published", state.DeadBlocking: "dead and blocking", state.Waiting: "waiting",
		} {
			id := e.event(was, "order_created", state.Parked)
			gate, settler, person := e.connect(false), e.connect(false), e.connect(true)
			held := gate.hold(lockHeld, id.String())
			settling := settler.settle(settle, e.read(relay, id), becomes)
			settler.waitsFor(gate)
			acting := person.do("release", id)
			person.waitsFor(settler)
			if err := held.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if end := receive(t, settling); end.err != nil || end.rows != 1 {
				t.Errorf("the settle changed %d rows, %v", end.rows, end.err)
			}
			if acted := receive(t, acting); acted.err != nil || acted.results[0].Outcome != operator.NotApplicable ||
				acted.results[0].Was != was {
				t.Errorf("%+v, want not applicable, was %s", acted, was)
			}
		}
	})
}

// An operator whose client is silent does not keep the others from acting.
func TestASilentOperatorHoldsUpNobody(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.event("a", "order_created", state.DeadBlocking)
		silent := e.connect(true)
		tx := silent.hold("SELECT {schema}.outbox_act('ann', 'why', 'redrive', '{}')")
		var limit string
		if err := tx.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&limit); err != nil ||
			limit != "10s" {
			t.Fatalf("it may be silent for %q, %v", limit, err)
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = '100ms'"); err != nil {
			t.Fatal(err)
		}
		// And it never says more.
		if result := e.do(e.operator.Redrive, action(), id); result.Outcome != operator.Done {
			t.Errorf("%+v", result)
		}
	})
}

// Verbs and settles of the same events, in any order and all at once: nobody is given up for a deadlock, though nobody
// tries again. With events first somebody is.
func TestVerbsAndSettlesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const verbs = 400
		safe := e.crowd(t, settle, func(c *crowd) bool { return c.verbs.Load() >= verbs && c.settled.Load() >= verbs })
		if safe.deadlocks.Load() > 0 {
			t.Errorf("%d deadlocks in %d verbs and %d settled events", safe.deadlocks.Load(), safe.verbs.Load(),
				safe.settled.Load())
		}
		if got := e.one(`SELECT count(*)::text FROM {schema}.outbox_events e FULL JOIN {schema}.outbox_held h
			ON h.lane = e.lane AND h.seq = e.seq WHERE (e.state = 1) IS DISTINCT FROM (h.kind IS NOT NULL)`); got != "0" {
			t.Errorf("%s events are held by one table and not by the other", got)
		}
		unsafe := e.crowd(t, eventsFirst, func(c *crowd) bool { return c.deadlocks.Load() > 0 })
		t.Logf("%d verbs did something, %d events were settled; events first, the first deadlock came with verb %d",
			safe.verbs.Load(), safe.settled.Load(), unsafe.verbs.Load())
	})
}

// A crowd is what verbs and settles came to that ran at once.
type crowd struct{ verbs, settled, deadlocks atomic.Int64 }

// crowd has operators and relays change the same few events until it is enough: relays make what is due dead, parked or
// waiting, operators bring it back.
func (e *env) crowd(t *testing.T, statement string, enough func(*crowd) bool) *crowd {
	t.Helper()
	relay, c := e.relay(), &crowd{}
	var ids []outbox.ID
	for i := range 24 {
		is := []state.State{state.DeadBlocking, state.Dead, state.Parked, state.Retrying}[i%4]
		ids = append(ids, e.event(fmt.Sprint("crowd ", i%6), "order_created", is))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	some := func(random *rand.Rand) []outbox.ID {
		chosen := make([]outbox.ID, 0, len(ids))
		for _, i := range random.Perm(len(ids))[:8+random.IntN(8)] {
			chosen = append(chosen, ids[i])
		}
		return chosen
	}
	ended := func(err error) {
		if deadlocked(err) {
			c.deadlocks.Add(1)
		} else if err != nil && ctx.Err() == nil {
			t.Error(err)
			cancel()
		}
	}
	var all sync.WaitGroup
	for worker := range uint64(3) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, worker))
			for !enough(c) && ctx.Err() == nil {
				do := []verb{e.operator.Redrive, e.operator.Skip, e.operator.Release}[random.IntN(3)]
				results, err := do(ctx, action(), some(random)...)
				ended(err)
				for _, result := range results {
					if result.Outcome == operator.Done {
						c.verbs.Add(1)
						break
					}
				}
			}
		})
		all.Go(func() {
			random := rand.New(rand.NewPCG(2, worker))
			for !enough(c) && ctx.Err() == nil {
				rows, err := e.settleSome(ctx, statement, relay, some(random), state.Parked+state.State(random.IntN(3)))
				ended(err)
				c.settled.Add(int64(rows))
			}
		})
	}
	all.Wait()
	if !enough(c) {
		t.Fatalf("%d verbs, %d settled events, %d deadlocks: that is not enough", c.verbs.Load(), c.settled.Load(),
			c.deadlocks.Load())
	}
	return c
}

// settleSome reads those of the events that are due or wait, and settles them.
func (e *env) settleSome(ctx context.Context, statement, relay string, ids []outbox.ID,
	becomes state.State,
) (rows int, err error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	b := batch{relay: relay}
	if err := e.admin.QueryRow(ctx, e.sql(`SELECT coalesce(array_agg(h.lane ORDER BY i.place), '{}'),
		coalesce(array_agg(h.seq ORDER BY i.place), '{}'), coalesce(array_agg(h.version ORDER BY i.place), '{}')
		FROM unnest($1::text[]) WITH ORDINALITY i(id, place) JOIN {schema}.outbox_events e ON e.id = i.id::uuid
		JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq WHERE h.kind IN (1, 3)`), texts,
	).Scan(&b.lanes, &b.seqs, &b.versions); err != nil {
		return 0, err
	}
	err = e.admin.QueryRow(ctx, e.sql(statement), b.relay, b.lanes, b.seqs, b.versions, int16(becomes)).Scan(&rows)
	return rows, err
}
