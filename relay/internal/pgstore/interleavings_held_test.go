package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// An event that is held has two rows, and settles, unparking and operators change both. Each order of their steps is
// played here as in interleavings_test.go: with the statements as they are, and with one that is not safe.

// Parts of the statements.
const (
	inOrder      = "ORDER BY a.number" // of a settle, in which held rows are locked
	byNumber     = " ORDER BY seq) s"  // of a settle, in which events are locked
	lockHeld     = "FOR UPDATE) h"
	theVersion   = " AND h.version = a.version"
	ownStatement = "WITH own AS MATERIALIZED ("
)

// fullSettle runs a statement like that of a settle, and returns how many of its events were left unchanged.
func (w *world) fullSettle(ctx context.Context, text string, settle *core.Settle) (int, error) {
	_, args := w.store.FullSettle(settle)
	var applied bool
	var unchanged []int64
	err := w.pool.QueryRow(ctx, text, args...).Scan(&applied, nil, nil, &unchanged)
	if err == nil && !applied {
		err = errors.New("the settle was not applied")
	}
	return len(unchanged), err
}

// lockByHand locks the held row of an event, as the first step of an operator's statement.
func (w *world) lockByHand(ctx context.Context, tx pgx.Tx, found core.Found) error {
	_, err := tx.Exec(ctx, w.sql("SELECT FROM {schema}.outbox_held WHERE lane = $1 AND seq = $2 FOR UPDATE"), found.Lane,
		found.Seq)
	return err
}

// deadlocks counts the calls that the server has ended because they waited for each other.
func deadlocks(t testing.TB, errs ...error) (n int) {
	t.Helper()
	for _, err := range errs {
		var failed *pgconn.PgError
		if errors.As(err, &failed) && failed.Code == "40P01" {
			n++
		} else if err != nil {
			t.Error(err)
		}
	}
	return n
}

// TestHeldRowsAreLockedInOneOrder: a settle and whoever else wants the same held rows, an operator, unparking, or the
// same settle that was sent again, wait for each other. A settle with another order would meet them, and one of the two
// fail.
func TestHeldRowsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text, held := statement("settle", w), w.hold(t, "1")
		for _, unsafe := range []bool{false, true} {
			if unsafe {
				text = swap(t, text, inOrder, inOrder+" DESC")
			}
			for name, other := range map[string]func(*core.Settle, []core.Found) error{
				"an operator": func(_ *core.Settle, rows []core.Found) error {
					tx := w.begin(t)
					defer func() { _ = tx.Rollback(context.Background()) }()
					for _, row := range rows {
						if err := w.lockByHand(t.Context(), tx, row); err != nil {
							return err
						}
					}
					return nil
				},
				"unparking": func(*core.Settle, []core.Found) error {
					_, err := w.store.Unpark(t.Context(), core.Unpark{
						Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Types: []string{"order_created"},
					})
					return err
				},
				"the same settle": func(settle *core.Settle, _ []core.Found) error {
					_, err := w.store.Settle(t.Context(), settle)
					return err
				},
			} {
				var rows []core.Found
				settle := &core.Settle{Owner: held.Owner, Lanes: held.lanes()}
				for range 3 {
					rows = append(rows, w.found(t, w.add(t, "1", core.Parked)))
					settle.Dead = append(settle.Dead, core.Death{Found: rows[len(rows)-1], Reason: "rejected"})
				}
				// Somebody has the row in the middle. Who comes first gets the first row, or the last one.
				middle := w.begin(t)
				if err := w.lockByHand(t.Context(), middle, rows[1]); err != nil {
					t.Fatal(err)
				}
				settled := beside(func() (error, error) {
					_, err := w.fullSettle(t.Context(), text, settle)
					return err, nil
				})
				settler := w.waiter(t, pid(middle))
				others := beside(func() (error, error) { return other(settle, rows), nil })
				w.blocked(t, settler, 1) // at the first row, or at the one in the middle
				commit(t, middle)
				n := deadlocks(t, get(t, "the settle", settled), get(t, name, others))
				if n > 0 != unsafe {
					t.Errorf("%s: %d deadlocks, and the settle has another order: %t", name, n, unsafe)
				}
				if !unsafe && w.state(t, rows[0].ID) != core.Dead {
					t.Errorf("%s: state %d after the settle", name, w.state(t, rows[0].ID))
				}
				w.exec(t, "DELETE FROM {schema}.outbox_held")
				w.exec(t, "UPDATE {schema}.outbox_events SET state = 5")
			}
		}
	})
}

// TestEventsAreLockedInOneOrder: of two settles of the same events, one of which comes from a connection that was given
// up, the second waits for the first, whichever of the two statements they are and however the events lie in the lanes.
func TestEventsAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text, held := statement("settle", w), w.acquire(t)
		w.fill(t, 1, 5000, "'t'", "'order'", "i::text", "6") // a small table is read as it lies
		aggregates := []string{"1", "2", "3"}
		slices.SortFunc(aggregates, func(a, b string) int { return int(w.lane(t, b)) - int(w.lane(t, a)) })
		for _, unsafe := range []bool{false, true} {
			if unsafe {
				text = swap(t, text, byNumber, ") s") // by lane
			}
			settle := &core.Settle{Owner: held.Owner, Lanes: held.lanes()}
			for _, aggregate := range aggregates {
				settle.Published = append(settle.Published, w.found(t, w.add(t, aggregate, core.Ready)))
			}
			middle := w.begin(t)
			do(t, middle, w.sql("SELECT FROM {schema}.outbox_events WHERE id = $1 FOR UPDATE"), settle.Published[1].ID.String())
			first := beside(func() (error, error) {
				_, err := w.store.Settle(t.Context(), settle)
				return err, nil
			})
			settler := w.waiter(t, pid(middle))
			second := beside(func() (error, error) {
				_, err := w.fullSettle(t.Context(), text, settle)
				return err, nil
			})
			w.blocked(t, settler, 1)
			commit(t, middle)
			if n := deadlocks(t, get(t, "the first", first), get(t, "the second", second)); n > 0 != unsafe {
				t.Errorf("%d deadlocks, and the events are locked by lane: %t", n, unsafe)
			}
		}
	})
}

// kinds are the settles of an event that was read as held.
func (h holder) kinds(found core.Found) map[string]*core.Settle {
	settle := func(change func(*core.Settle)) *core.Settle {
		s := &core.Settle{Owner: h.Owner, Lanes: h.lanes()}
		change(s)
		return s
	}
	return map[string]*core.Settle{
		"published": settle(func(s *core.Settle) { s.Published = []core.Found{found} }),
		"retry":     settle(func(s *core.Settle) { s.Retry = []core.Retry{{Found: found, Attempts: 7}} }),
		"park":      settle(func(s *core.Settle) { s.Park = []core.Park{{Found: found}} }),
		"dead":      settle(func(s *core.Settle) { s.Dead = []core.Death{{Found: found, Reason: "rejected"}} }),
		"dead, blocks": settle(func(s *core.Settle) {
			s.Dead = []core.Death{{Found: found, Reason: "rejected", Blocking: true}}
		}),
	}
}

// skipAndRedrive is what two operators do one after the other: the event is held again, by another row.
func (w *world) skipAndRedrive(ctx context.Context, in interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, found core.Found,
) error {
	for _, statement := range []string{
		"DELETE FROM {schema}.outbox_held WHERE lane = $1 AND seq = $2",
		"UPDATE {schema}.outbox_events SET state = 5 WHERE lane = $1 AND seq = $2 AND state = 1",
		"UPDATE {schema}.outbox_events SET state = 1, attempt_count = 0 WHERE lane = $1 AND seq = $2 AND state = 5",
		`INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		 SELECT lane, seq, 1, now(), namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events
		  WHERE lane = $1 AND seq = $2`,
	} {
		if _, err := in.Exec(ctx, w.sql(statement), found.Lane, found.Seq); err != nil {
			return err
		}
	}
	return nil
}

// TestAHeldRowThatWasMadeAnew: while a settle waits, behind its snapshot, an operator skips the event and redrives it.
// It has another held row then, which the settle does not see; the event looks as before. A settle that has not locked
// the held row changes the event alone: it would be published and held at once, for ever.
func TestAHeldRowThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		gated := swap(t, statement("settle", w),
			ownStatement, "WITH gate AS MATERIALIZED (SELECT "+w.gate()+"), own AS MATERIALIZED (",
			"r.ended_at IS NULL FOR KEY SHARE", "r.ended_at IS NULL AND EXISTS (SELECT FROM gate) FOR KEY SHARE")
		unlocked := swap(t, gated, lockHeld, ") h")
		for kind := range held.kinds(core.Found{}) {
			for _, behind := range []string{"the operator", "a gate"} {
				for text, unsafe := range map[string]bool{gated: false, unlocked: true} {
					found := w.found(t, w.add(t, "1", core.Waiting))
					unchanged := w.settleBehind(t, behind, text, held.kinds(found)[kind], found)
					if intact := w.asRedriven(t, found); intact == unsafe || !unsafe && kind != "published" && unchanged != 1 {
						t.Errorf("%s, behind %s, the held row not locked: %t: state %d, %d unchanged", kind, behind, unsafe,
							w.state(t, found.ID), unchanged)
					}
					w.move(t, found.ID, core.Dead)
				}
			}
		}
	})
}

// settleBehind has a settle wait, behind its snapshot, while the event is skipped and redriven: for the operator's
// lock, or at the gate until the operator has come and gone. It returns how many events were left unchanged.
func (w *world) settleBehind(t testing.TB, behind, text string, settle *core.Settle, found core.Found) int {
	t.Helper()
	gate, operator := w.shut(t), w.begin(t)
	start := func() <-chan func(testing.TB) int {
		return beside(func() (int, error) { return w.fullSettle(t.Context(), text, settle) })
	}
	redrive := func() {
		if err := w.skipAndRedrive(t.Context(), operator, found); err != nil {
			t.Fatal(err)
		}
	}
	var settled <-chan func(testing.TB) int
	if behind == "the operator" {
		commit(t, gate)
		redrive()
		settled = start()
		w.blocked(t, pid(operator), 1)
		commit(t, operator)
	} else {
		settled = start()
		w.blocked(t, pid(gate), 1)
		redrive()
		commit(t, operator)
		commit(t, gate)
	}
	return get(t, "the settle", settled)
}

// asRedriven tells whether an event is as skipAndRedrive left it.
func (w *world) asRedriven(t testing.TB, found core.Found) bool {
	t.Helper()
	return w.state(t, found.ID) == core.Retrying && w.count(t, `SELECT count(*) FROM {schema}.outbox_events e
		WHERE id = $1 AND attempt_count = 0 AND last_error IS NULL
		  AND NOT EXISTS (SELECT FROM {schema}.outbox_dlq d WHERE d.event_id = e.id)`, found.ID.String()) == 1
}

// TestASettleSentAgainAfterARedrive: it was applied, its answer was lost, and an operator has released or redriven the
// event meanwhile. The held row has another version then, and never one that it had before.
func TestASettleSentAgainAfterARedrive(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for _, unsafe := range []bool{false, true} {
			text := statement("settle", w)
			if unsafe {
				text = swap(t, text, theVersion, "", theVersion, "")
			}
			for kind := range held.kinds(core.Found{}) {
				if kind == "published" { // asks for no version: acknowledged is acknowledged
					continue
				}
				for from := core.Retrying; from <= core.Waiting; from++ {
					if kind == "park" && from == core.Parked || kind == "retry" && from == core.Parked {
						continue
					}
					found := w.found(t, w.add(t, "1", from))
					settle := held.kinds(found)[kind]
					if n, err := w.fullSettle(t.Context(), text, settle); err != nil || n != 0 {
						t.Fatalf("%s from %d: %d unchanged, %v", kind, from, n, err)
					}
					if w.state(t, found.ID) == core.Dead {
						w.release(t, found.ID)
					} else if err := w.skipAndRedrive(t.Context(), w.owner, found); err != nil {
						t.Fatal(err)
					}
					before := w.everything(t)
					n, err := w.fullSettle(t.Context(), text, settle)
					if err != nil || (n == 0) != unsafe || slices.Equal(w.everything(t), before) == unsafe {
						t.Errorf("%s from %d, sent again and the version not looked at: %t: %d unchanged, state %d, %v", kind, from,
							unsafe, n, w.state(t, found.ID), err)
					}
					w.move(t, found.ID, core.Dead)
				}
			}
		}
	})
}

// TestUnparkingBehindADeath: a settle ends a parked event that blocks its aggregate now, and unparking waits for it.
// What was seen as parked is not any more.
func TestUnparkingBehindADeath(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for _, unsafe := range []bool{false, true} {
			text := statement("unpark", w)
			if unsafe {
				text = swap(t, text, lockHeld, ") h")
			}
			dies, goes := w.found(t, w.add(t, "1", core.Parked)), w.found(t, w.add(t, "1", core.Parked))
			settling := w.beginAs(t)
			if answer := w.settleIn(t, settling, held.kinds(dies)["dead, blocks"]); !answer.Applied {
				t.Fatalf("answered %+v", answer)
			}
			unparked := beside(func() (int64, error) {
				done, err := w.pool.Exec(t.Context(), text, unparkAll(held)...)
				return done.RowsAffected(), err
			})
			w.blocked(t, pid(settling), 1)
			commit(t, settling)
			get(t, "unparking", unparked)
			if state := w.state(t, dies.ID); (state == core.DeadBlocking) == unsafe ||
				w.state(t, goes.ID) != core.Retrying {
				t.Errorf("the held rows not locked: %t: the dead one is in state %d, the other in %d", unsafe, state,
					w.state(t, goes.ID))
			}
			w.move(t, dies.ID, core.Dead)
			w.move(t, goes.ID, core.Dead)
		}
	})
}

// unparkAll are the arguments of an unpark.
func unparkAll(held holder) []any {
	return pgstore.UnparkArgs(core.Unpark{
		Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Types: []string{"order_created"},
	})
}

// TestADeathBehindUnparking: the same in the other order. What is unparked is not what was read as parked, and lives.
func TestADeathBehindUnparking(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for _, unsafe := range []bool{false, true} {
			text := statement("settle", w)
			if unsafe {
				text = swap(t, text, lockHeld, ") h")
			}
			found := w.found(t, w.add(t, "1", core.Parked))
			unparking := w.beginAs(t)
			do(t, unparking, statement("unpark", w), unparkAll(held)...)
			settled := beside(func() (int, error) {
				return w.fullSettle(t.Context(), text, held.kinds(found)["dead"])
			})
			w.blocked(t, pid(unparking), 1)
			commit(t, unparking)
			n := get(t, "the settle", settled)
			if state := w.state(t, found.ID); (state == core.Retrying) == unsafe || (n == 1) == unsafe {
				t.Errorf("the held row not locked: %t: state %d, %d unchanged", unsafe, state, n)
			}
			w.move(t, found.ID, core.Dead)
		}
	})
}
