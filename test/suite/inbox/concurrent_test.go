package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// answer is what a call said.
type answer struct {
	yes bool
	err error
}

// endings are the ways in which the transaction of the first delivery ends.
var endings = map[string]func(t *testing.T, db *pgtest.DB, tx pgx.Tx){
	"commit": func(t *testing.T, _ *pgtest.DB, tx pgx.Tx) { t.Helper(); commit(t, tx) },
	"rollback": func(t *testing.T, _ *pgtest.DB, tx pgx.Tx) {
		t.Helper()
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	"killed": func(t *testing.T, db *pgtest.DB, tx pgx.Tx) {
		t.Helper()
		db.Exec(t, "SELECT pg_terminate_backend($1)", int(tx.Conn().PgConn().PID()))
		_ = tx.Rollback(t.Context()) // gives the dead connection back
	},
}

// TestFaultI3TheSecondWaits: a delivery that comes while the first is handled waits for it and is told the truth,
// whichever way the first one ends and whatever the isolation level is.
func TestFaultI3TheSecondWaits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		for name, end := range endings {
			for _, level := range []string{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
				event := outbox.NewID()
				one, two := db.Begin(t), db.Begin(t)
				first(t, db, one, event, true)
				if _, err := two.Exec(t.Context(), "SET TRANSACTION ISOLATION LEVEL "+level); err != nil {
					t.Fatal(err)
				}
				second := make(chan answer, 1)
				go func() {
					yes, err := inbox.First(t.Context(), outbox.InSchema(two, db.Schema), consumer, event)
					second <- answer{yes, err}
				}()
				db.Waiting(t, two, nil)
				end(t, db, one)
				got := eventually.Receive(t, "the second one's answer", second)
				switch {
				case name == "commit" && level == "READ COMMITTED":
					if got.err != nil || got.yes {
						t.Errorf("%s, %s: got %t, %v, want false", name, level, got.yes, got.err)
					}
				case name == "commit":
					if !outbox.Retryable(got.err) || got.yes || !strings.Contains(got.err.Error(), "run this one again") {
						t.Errorf("%s, %s: got %t, %v, want an error that says to run it again", name, level, got.yes, got.err)
					}
				case got.err != nil || !got.yes:
					t.Errorf("%s, %s: got %t, %v, want true", name, level, got.yes, got.err)
				}
				_ = two.Rollback(t.Context())
			}
		}
	})
}

// TestTheWaitCanBeBounded by lock_timeout and by the context, and neither is an answer.
func TestTheWaitCanBeBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		event := outbox.NewID()
		one, two := db.Begin(t), db.Begin(t)
		first(t, db, one, event, true)
		if _, err := two.Exec(t.Context(), "SET LOCAL lock_timeout = '10ms'"); err != nil {
			t.Fatal(err)
		}
		yes, err := inbox.First(t.Context(), outbox.InSchema(two, db.Schema), consumer, event)
		if yes || pgtest.SQLState(err) != "55P03" || !strings.Contains(err.Error(), "do not acknowledge") {
			t.Errorf("lock_timeout: got %t, %v", yes, err)
		}

		three := db.Begin(t)
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan answer, 1)
		go func() {
			yes, err := inbox.First(ctx, outbox.InSchema(three, db.Schema), consumer, event)
			canceled <- answer{yes, err}
		}()
		db.Waiting(t, three, nil)
		cancel()
		if got := eventually.Receive(t, "the canceled one's answer", canceled); got.yes ||
			!errors.Is(got.err, context.Canceled) {
			t.Errorf("canceled: got %t, %v", got.yes, got.err)
		}
		commit(t, one)
	})
}

// TestTwoBatchesInOppositeOrder end in a deadlock of one of them, which is told to run again.
func TestTwoBatchesInOppositeOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		a, b := outbox.NewID(), outbox.NewID()
		one, two := db.Begin(t), db.Begin(t)
		first(t, db, one, a, true)
		first(t, db, two, b, true)
		answers := make(chan answer, 2)
		request := func(tx pgx.Tx, event outbox.ID) {
			yes, err := inbox.First(t.Context(), outbox.InSchema(tx, db.Schema), consumer, event)
			if err != nil {
				_ = tx.Rollback(t.Context())
			}
			answers <- answer{yes, err}
		}
		go request(one, b)
		go request(two, a)
		x, y := eventually.Receive(t, "an answer", answers), eventually.Receive(t, "the other answer", answers)
		if x.err == nil {
			x, y = y, x
		}
		if !outbox.Retryable(x.err) || !strings.Contains(x.err.Error(), "run this one again") || y.err != nil || !y.yes {
			t.Errorf("got %v and %v, want one deadlock and one first", x, y)
		}
	})
}

// TestNewerTakesTurns: two events of one aggregate at the same time do not pass each other.
func TestNewerTakesTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		for i, test := range []struct {
			ending        string
			first, second int64
			want          bool
		}{
			{ending: "commit", first: 4, second: 5, want: true},
			{ending: "commit", first: 5, second: 4},
			{ending: "commit", first: 5, second: 5},
			{ending: "rollback", first: 5, second: 4, want: true},
			{ending: "killed", first: 5, second: 4, want: true},
		} {
			for _, known := range []bool{false, true} { // whether the aggregate has its row before
				name := fmt.Sprint(i, known)
				newer := func(tx pgx.Tx, seq int64) answer {
					yes, err := inbox.Newer(t.Context(), outbox.InSchema(tx, db.Schema), consumer,
						outbox.Aggregate{Type: "order", ID: name}, seq)
					return answer{yes, err}
				}
				if known {
					before := db.Begin(t)
					newer(before, 1)
					commit(t, before)
				}
				one, two := db.Begin(t), db.Begin(t)
				if got := newer(one, test.first); got.err != nil || !got.yes {
					t.Fatal(got)
				}
				second := make(chan answer, 1)
				go func() { second <- newer(two, test.second) }()
				db.Waiting(t, two, nil)
				endings[test.ending](t, db, one)
				if got := eventually.Receive(t, "the second one's answer", second); got.err != nil || got.yes != test.want {
					t.Errorf("%+v: got %t, %v", test, got.yes, got.err)
				}
				_ = two.Rollback(t.Context())
			}
		}
	})
}

// handle is a consumer's handler of one delivery: nil is an acknowledgement.
type handle func(ctx context.Context, db *pgtest.DB, d delivery) error

// delivery is a message, and whether the handler fails this time after its effect.
type delivery struct {
	event     outbox.ID
	aggregate string
	seq       int64
	fails     bool
}

var errPlanned = errors.New("the handler fails")

// handleOnce is the right way: check, effect and mark in one transaction.
func handleOnce(ctx context.Context, db *pgtest.DB, d delivery) error {
	return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, db.Schema), consumer, d.event)
		if err != nil || !first {
			return err
		}
		return effect(ctx, db, tx, d)
	})
}

func effect(ctx context.Context, db *pgtest.DB, tx pgx.Tx, d delivery) error {
	_, err := tx.Exec(ctx, db.SQL("INSERT INTO {schema}.effects (event_id, aggregate, seq) VALUES ($1, $2, $3)"),
		d.event.String(), d.aggregate, d.seq)
	if err == nil && d.fails {
		return errPlanned
	}
	return err
}

// deliver brings every delivery to the handler, several at a time, and again until it is acknowledged. A handler that
// is to fail does so once.
func deliver(t testing.TB, db *pgtest.DB, deliveries []delivery, handler handle) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	const workers = 6
	queue, ended := make(chan delivery), make(chan error, workers)
	for range workers {
		go func() {
			for d := range queue {
				for err := handler(ctx, db, d); err != nil; err = handler(ctx, db, d) {
					if ctx.Err() != nil {
						ended <- err
						return
					}
					d.fails = false
				}
			}
			ended <- nil
		}()
	}
	for _, d := range deliveries {
		select {
		case queue <- d:
		case <-ctx.Done():
		}
	}
	close(queue)
	for range workers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// copies are deliveries of n events, each three times and close together, every fourth failing at first.
func copies(n int) []delivery {
	var all []delivery
	for i := range n {
		d := delivery{event: outbox.NewID(), aggregate: fmt.Sprint(i % 10), seq: int64(i + 1)}
		for copy := range 3 {
			d.fails = (i+copy)%4 == 0
			all = append(all, d)
		}
	}
	return all
}

// failing are copies that all fail at first: whichever of an event comes first does.
func failing(n int) []delivery {
	all := copies(n)
	for i := range all {
		all[i].fails = true
	}
	return all
}

// count is how many of n events had no effect, and how many had more than one.
func count(t testing.TB, db *pgtest.DB, n int) (lost, double int) {
	t.Helper()
	return n - db.Count(t, "SELECT count(DISTINCT event_id) FROM {schema}.effects"),
		db.Count(t, "SELECT count(*) FROM (SELECT FROM {schema}.effects GROUP BY event_id HAVING count(*) > 1) twice")
}

// TestOneEffect: copies at the same time and handlers that fail after their effect leave one effect per event.
func TestOneEffect(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		const events = 200
		deliver(t, db, copies(events), handleOnce)
		if lost, double := count(t, db, events); lost+double != 0 {
			t.Errorf("%d events had no effect and %d had more than one", lost, double)
		}
		if marks := db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled"); marks != events {
			t.Errorf("%d marks for %d events", marks, events)
		}
	})
}

// TestFaultI16OtherTransactions: a mark or an effect in a transaction of its own is what the API cannot keep anybody
// from, and this shows what it costs. It also shows that TestOneEffect would see it.
func TestFaultI16OtherTransactions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		const events = 40
		// The mark commits before the effect: a handler that fails then has lost the event.
		deliver(t, db, failing(events), func(ctx context.Context, db *pgtest.DB, d delivery) error {
			var first bool
			err := outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) (err error) {
				first, err = inbox.First(ctx, outbox.InSchema(tx, db.Schema), consumer, d.event)
				return err
			})
			if err != nil || !first {
				return err
			}
			return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error { return effect(ctx, db, tx, d) })
		})
		if lost, _ := count(t, db, events); lost != events {
			t.Errorf("a mark that commits alone lost %d of %d events", lost, events)
		}

		db.Exec(t, "TRUNCATE {schema}.effects, {schema}.inbox_handled")
		// The effect commits on its own: a handler that fails then has it twice.
		deliver(t, db, failing(events), func(ctx context.Context, db *pgtest.DB, d delivery) error {
			return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
				first, err := inbox.First(ctx, outbox.InSchema(tx, db.Schema), consumer, d.event)
				if err != nil || !first {
					return err
				}
				fails := d.fails
				d.fails = false
				err = outbox.InTx(ctx, db.Pool, func(ctx context.Context, own pgx.Tx) error { return effect(ctx, db, own, d) })
				if err == nil && fails {
					return errPlanned
				}
				return err
			})
		})
		if _, double := count(t, db, events); double != events {
			t.Errorf("an effect that commits alone happened twice for %d of %d events", double, events)
		}
	})
}

// backwards is how often an aggregate was given an older state than it had.
func backwards(t testing.TB, db *pgtest.DB) int {
	t.Helper()
	return db.Count(t, `SELECT count(*) FROM (SELECT seq < lag(seq) OVER (PARTITION BY aggregate ORDER BY n) AS back `+
		`FROM {schema}.effects) e WHERE back`)
}

// TestFaultI11OutOfOrder: deliveries in any order, with late copies, leave every aggregate with its newest state, and
// none goes backwards on the way. Without the guard it does.
func TestFaultI11OutOfOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		all := copies(100)
		for i := range len(all) / 2 { // the newest in the middle, the rest in zigzag around it
			if i%2 == 0 {
				all[i], all[len(all)-1-i] = all[len(all)-1-i], all[i]
			}
		}
		deliver(t, db, all, handleOnce)
		if backwards(t, db) == 0 {
			t.Fatal("without the guard nothing went backwards: this test would see nothing")
		}
		db.Exec(t, "TRUNCATE {schema}.effects, {schema}.inbox_handled")
		deliver(t, db, all, func(ctx context.Context, db *pgtest.DB, d delivery) error {
			return outbox.InTx(ctx, db.Pool, func(ctx context.Context, tx pgx.Tx) error {
				in := outbox.InSchema(tx, db.Schema)
				if first, err := inbox.First(ctx, in, consumer, d.event); err != nil || !first {
					return err
				}
				if newer, err := inbox.Newer(ctx, in, consumer, outbox.Aggregate{Type: "order", ID: d.aggregate},
					d.seq); err != nil || !newer {
					return err
				}
				return effect(ctx, db, tx, d)
			})
		})
		if n := backwards(t, db); n != 0 {
			t.Errorf("%d times backwards", n)
		}
		if n := db.Count(t, `SELECT count(*) FROM {schema}.inbox_newest n 
			WHERE n.seq = (SELECT max(e.seq) FROM {schema}.effects e WHERE e.aggregate = n.aggregate_id)
			AND n.seq = 91 + n.aggregate_id::int`); n != 10 {
			t.Errorf("%d of 10 aggregates have their newest state", n)
		}
		if marks := db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled"); marks != 100 {
			t.Errorf("%d marks for 100 events: an older event is handled as well", marks)
		}
	})
}
