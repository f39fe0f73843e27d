package pgstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// publishing is the settle of one event that was published.
func (h holder) publishing(event core.Found) *core.Settle {
	return &core.Settle{Owner: h.Owner, Lanes: []int16{event.Lane}, Published: []core.Found{event}}
}

// behindItsBack tells whether the next owner of a lane reads an event as ready that is published when finish has
// returned.
func (w *world) behindItsBack(t testing.TB, lane int16, event outbox.ID, finish func()) bool {
	t.Helper()
	next := w.take(t, w.register(t), 1, lane)
	read := w.read(t, core.Read{Owner: next.Owner, Lanes: []core.LaneRead{{Lane: lane, Limit: 9}}})
	finish()
	return slices.Contains(ids(read.Events), event) && w.state(t, event) == core.Published
}

// TestARelayIsNotEndedBesideItsSettle: an UPDATE that changes no key does not wait for FOR KEY SHARE. Without the lock
// that comes first, the next owner would read what a settle of the last one is just writing.
func TestARelayIsNotEndedBesideItsSettle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text := w.ending(t)
		for name, c := range map[string]struct {
			text   string
			unsafe bool
		}{
			"as it is":       {text, false},
			"without a lock": {swap(t, text, theLock, swap(t, theLock, "FOR UPDATE SKIP LOCKED", "")), true},
			"a weaker lock":  {swap(t, text, theLock, swap(t, theLock, "FOR UPDATE", "FOR NO KEY UPDATE")), true},
		} {
			w.exec(t, c.text)
			held, event := w.hold(t, "1"), w.add(t, "1", core.Ready)
			settling := w.beginAs(t)
			if answer := w.settleIn(t, settling, held.publishing(w.found(t, event))); !answer.Applied {
				t.Fatalf("answered %+v", answer)
			}
			if ended := w.end(t); len(ended) > 0 != c.unsafe {
				t.Errorf("%s: ended %v beside the settle", name, ended)
			}
			if got := w.behindItsBack(t, held.lane(), event, func() { commit(t, settling) }); got != c.unsafe {
				t.Errorf("%s: settled behind the back of the next owner: %t, want %t", name, got, c.unsafe)
			}
			if w.end(t); !w.isEnded(t, held.Owner) {
				t.Errorf("%s: after the settle the relay is there still", name)
			}
			w.exec(t, text)
		}
	})
}

// TestASettleOfALaneThatWasGivenAway: it comes after the release, or waits for it. The relay's token is right, and a
// look at the lane's row is of the snapshot, which is older than the release. Only what stands on the row that is
// locked is read anew. The settle of a lane that the relay has kept passes.
func TestASettleOfALaneThatWasGivenAway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		const asked = "EXISTS (SELECT FROM own WHERE own.lanes @> $3::smallint[])"
		text := statement("settle_published", w)
		owners := w.sql(`EXISTS (SELECT FROM own) AND cardinality($3::smallint[]) = (SELECT count(*)
			FROM {schema}.outbox_lanes l WHERE l.lane = ANY ($3::smallint[]) AND l.owner = $1::uuid)`)
		for name, c := range map[string]struct {
			text          string // empty: the store's own
			full          bool   // not only of what was published
			after, behind bool   // whether it is applied
		}{
			"as it is":          {},
			"as it is, in full": {full: true},
			"only the token":    {swap(t, text, asked, "EXISTS (SELECT FROM own)"), false, true, true},
			"the lanes' rows":   {swap(t, text, asked, owners), false, false, true},
		} {
			for _, behind := range []bool{false, true} {
				held := w.hold(t, "1", "2")
				given := held.lane()
				settle := func(event outbox.ID) <-chan func(testing.TB) bool {
					settle := held.publishing(w.found(t, event))
					if c.full {
						settle.ClearNotes = settle.Lanes
					}
					return beside(func() (applied bool, err error) {
						if c.text == "" {
							answer, err := w.store.Settle(t.Context(), settle)
							return answer.Applied || len(answer.Held) > 0, err
						}
						_, args := w.store.SettleStatement(settle)
						err = w.pool.QueryRow(t.Context(), c.text, args...).Scan(&applied, nil, nil, nil)
						return applied, err
					})
				}
				releasing := w.begin(t) // the lane's row: the release has the relay's by then
				do(t, releasing, w.sql("SELECT FROM {schema}.outbox_lanes WHERE lane = $1 FOR UPDATE"), given)
				released := beside(func() (any, error) {
					return nil, w.store.Release(t.Context(), core.Release{
						Owner: held.Owner, Lanes: []core.Progress{held.at(given, 0)},
					})
				})
				releaser, want := w.waiter(t, pid(releasing)), c.behind
				event, other := w.add(t, "1", core.Ready), w.add(t, "2", core.Ready)
				var late, passes <-chan func(testing.TB) bool
				if behind {
					late, passes = settle(event), settle(other)
					w.blocked(t, releaser, 2)
				}
				commit(t, releasing)
				get(t, "the release", released)
				if !behind {
					w.take(t, w.register(t), 1, given)
					late, passes, want = settle(event), settle(other), c.after
				}
				if got := get(t, "the settle", late); got != want || (w.state(t, event) == core.Published) != want {
					t.Errorf("%s, waiting %t: the settle of a lane that was given away was applied: %t, want %t", name, behind,
						got, want)
				}
				if !get(t, "the settle of another lane", passes) || w.state(t, other) != core.Published {
					t.Errorf("%s, waiting %t: the settle of a lane that was kept was refused", name, behind)
				}
				w.end(t)
			}
		}
	})
}

// releaseText gives a lane back in a transaction by hand, with the lock that is given.
func (w *world) releaseText(ctx context.Context, tx pgx.Tx, lock string, held holder) (any, error) {
	relay, token := pgstore.Asker(held.Owner)
	if _, err := tx.Exec(ctx, lock, relay, token); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, statement("release", w), relay, token, []int16{held.lane()},
		[]pgtype.UUID{{Bytes: held.tenure, Valid: true}}, []int64{0}, []bool{false}, []int16{}, []string{}, "",
		[]pgtype.UUID{}, false, []int64{0}); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, statement("own_lanes", w), relay, token); err != nil {
		return nil, err
	}
	return nil, tx.Commit(ctx)
}

// TestAReleaseWaitsForSettles: with a lock that a settle does not hold up, the next owner of the lane would read what
// that is just writing.
func TestAReleaseWaitsForSettles(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		lock := statement("own_to_give", w)
		for _, unsafe := range []bool{false, true} {
			if unsafe {
				lock = swap(t, lock, "FOR UPDATE", "FOR NO KEY UPDATE")
			}
			held, event := w.hold(t, "1"), w.add(t, "1", core.Ready)
			settling, releasing := w.beginAs(t), w.beginAs(t)
			w.settleIn(t, settling, held.publishing(w.found(t, event)))
			released := beside(func() (any, error) { return w.releaseText(t.Context(), releasing, lock, held) })
			finish := func() { commit(t, settling) }
			if !unsafe {
				w.blocked(t, pid(settling), 1)
				finish()
				finish = func() {}
			}
			get(t, "the release", released)
			if got := w.behindItsBack(t, held.lane(), event, finish); got != unsafe {
				t.Errorf("settled behind the back of the next owner: %t, want %t", got, unsafe)
			}
			w.end(t)
		}
	})
}

// TestALaneIsFreeBecauseItsRowSaysSo: who concludes it from nobody being there who has it, does not see a relay that
// came after its snapshot, and takes the lane as well.
func TestALaneIsFreeBecauseItsRowSaysSo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		// It waits behind its snapshot, before it locks a lane.
		text := swap(t, statement("acquire", w),
			"WITH layout AS", "WITH gate AS MATERIALIZED (SELECT "+w.gate()+"), layout AS",
			"EXISTS (SELECT FROM layout)", "EXISTS (SELECT FROM gate) AND EXISTS (SELECT FROM layout)")
		for _, unsafe := range []bool{false, true} {
			if unsafe {
				text = swap(t, text, "l.owner IS NULL", w.sql(
					"NOT EXISTS (SELECT FROM {schema}.outbox_relays o WHERE o.ended_at IS NULL AND l.lane = ANY (o.lanes))"))
			}
			const lane = 7
			early, tenure := w.register(t), outbox.NewID().String()
			relay, token := pgstore.Asker(early)
			acquiring, gate := w.beginAs(t), w.shut(t)
			do(t, acquiring, statement("own_to_take", w), relay, token)
			acquired := beside(func() (any, error) {
				return acquiring.Exec(t.Context(), text, []int16{lane}, int32(1), relay, token, tenure)
			})
			w.blocked(t, pid(gate), 1)
			if late := w.take(t, w.register(t), 1, lane); len(late.taken) != 1 {
				t.Errorf("took %v", late.taken)
			}
			commit(t, gate)
			get(t, "the acquisition", acquired)
			do(t, acquiring, statement("own_lanes", w), relay, token)
			commit(t, acquiring)
			owners := w.count(t, "SELECT count(*) FROM {schema}.outbox_relays WHERE lanes @> ARRAY[$1::smallint]", lane)
			if want := map[bool]int{false: 1, true: 2}[unsafe]; owners != want {
				t.Errorf("the lane has %d owners, want %d", owners, want)
			}
			w.end(t)
		}
	})
}

// TestAnEndedRelayDoesNothing: and sees nothing, whether somebody else has its lane by now or not.
func TestAnEndedRelayDoesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		everything := func() []string {
			return slices.Concat(w.everything(t), w.rows(t, "SELECT * FROM {schema}.outbox_relays ORDER BY id"),
				w.rows(t, "SELECT * FROM {schema}.outbox_beats ORDER BY relay, number"))
		}
		held := w.hold(t, "1")
		for _, when := range []string{"alive", "ended", "ended, and the lane is taken"} {
			if when != "alive" {
				held = w.hold(t, "1")
				w.end(t, held.Owner)
			}
			if when == "ended, and the lane is taken" {
				w.hold(t, "1")
			}
			for _, state := range []core.State{core.Ready, core.Retrying, core.Parked} {
				w.add(t, "1", state)
			}
			before := everything()
			for name, effect := range w.effects(t, held) {
				if effect != (when == "alive") {
					t.Errorf("%s, %s: it had an effect: %t", when, name, effect)
				}
			}
			if after := everything(); when != "alive" && !slices.Equal(after, before) {
				t.Errorf("%s: changed to\n%s", when, strings.Join(after, "\n"))
			}
			w.exec(t, "UPDATE {schema}.outbox_events SET state = 5")
			w.exec(t, "DELETE FROM {schema}.outbox_held")
		}
		// What does not ask whether the relay was ended.
		careless := swap(t, statement("beat", w), " AND r.ended_at IS NULL", "")
		if alive, err := w.beatText(t.Context(), w.pool, careless, held.Owner); err != nil || !alive {
			t.Errorf("a careless beat of an ended relay: %t, %v", alive, err)
		}
	})
}

// effects makes every call of a relay that names its lane, and tells which of them did or showed something.
func (w *world) effects(t testing.TB, held holder) map[string]bool {
	t.Helper()
	effects, lane := map[string]bool{}, held.lane()
	read := core.Read{Owner: held.Owner, Lanes: []core.LaneRead{{Lane: lane, Limit: 9}}}
	found := w.read(t, read).Events
	effects["read"] = len(found) > 0
	read.Exclude = []string{"x"}
	effects["read of types"] = len(w.read(t, read).Events) > 0
	ctx, owner := t.Context(), held.Owner
	effects["held keys"] = len(must(w.store.HeldKeys(ctx, core.HeldKeys{
		Owner: owner, Lanes: core.AllLines(held.lanes()...),
	}))(t).Keys) > 0
	effects["due keys"] = len(must(w.store.DueKeys(ctx, core.DueKeys{
		Owner: owner, Lanes: []core.LaneFrom{{Lane: lane}}, Limit: 9,
	}))(t).Keys) > 0
	effects["held rows"] = len(must(w.store.HeldRows(ctx, core.HeldRows{
		Owner: owner, Limit: 9,
		Asks: []core.HeldAsk{{Lane: lane, Aggregate: aggregate("1"), Types: []string{"order_created"}}},
	}))(t).Events) > 0
	effects["old parked"] = len(must(w.store.OldParked(ctx, core.OldParked{
		Owner: owner, Lanes: core.FromStart(held.lanes()...), Limit: 9,
	}))(t).Events) > 0
	effects["sweep"] = len(must(w.store.Sweep(ctx, core.Sweep{
		Owner: owner, Floors: []core.Floor{{Lane: lane, Seq: 1 << 40}}, Limit: 9,
	}))(t).Found) > 0
	note := core.Note{Owner: owner, Tenure: held.at(lane, 0).Tenure, Event: outbox.NewID()}
	effects["note"] = must(w.store.Note(ctx, note))(t)
	note.Event = outbox.ID{}
	effects["note taken back"] = must(w.store.Note(ctx, note))(t)
	parked := func() int { return w.count(t, "SELECT count(*) FROM {schema}.outbox_held WHERE kind = 2") }
	before := parked()
	if _, err := w.store.Unpark(ctx, core.Unpark{
		Owner: owner, Lanes: core.FromStart(held.lanes()...), Types: []string{"order_created"},
	}); err != nil {
		t.Error(err)
	}
	effects["unpark"] = parked() < before
	nothing := core.Found{ID: outbox.NewID(), Lane: lane, Seq: 1 << 40}
	effects["settle of what was published"] = w.settle(t, held.publishing(nothing)).Applied
	effects["settle"] = w.settle(t, &core.Settle{Owner: owner, Lanes: held.lanes(), ClearNotes: held.lanes()}).Applied
	effects["acquire"] = len(w.take(t, owner, 9, allLanes()...).taken) > 0
	beat := w.beat(t, core.Heartbeat{Owner: owner, Lanes: []core.Progress{held.at(lane, 9)}})
	effects["beat"], effects["look"] = !beat.Ended, !w.look(t, owner).Ended
	owned := func() []string {
		return slices.Concat(w.rows(t, "SELECT * FROM {schema}.outbox_lanes ORDER BY lane"),
			w.rows(t, "SELECT * FROM {schema}.outbox_relays ORDER BY id"))
	}
	for _, end := range []bool{false, true} {
		before := owned()
		if err := w.store.Release(ctx, core.Release{
			Owner: owner, Lanes: []core.Progress{held.at(lane, 9)}, Tokens: []outbox.ID{held.tenure}, End: end,
		}); err != nil {
			t.Error(err)
		}
		effects[map[bool]string{false: "release", true: "leave"}[end]] = !slices.Equal(before, owned())
	}
	return effects
}

// TestAcquireSettleAndReleaseAtOnce: whoever locks several rows begins with the relay's, so that these wait for each
// other and none of them fails. Who begins with the lane's meets a settle that has the relay's and wants the lane's.
func TestAcquireSettleAndReleaseAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, unsafe := range []bool{false, true} {
			held, first, wait := w.hold(t, "1"), statement("own_to_give", w), 2
			w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 1 WHERE lane = $1", held.lane()) // which the settle resets
			releasing := w.beginAs(t)
			if unsafe {
				do(t, releasing, w.sql("SELECT FROM {schema}.outbox_lanes WHERE lane = $1 FOR NO KEY UPDATE"), held.lane())
				wait = 1 // the acquisition has nothing to wait for
			} else {
				relay, token := pgstore.Asker(held.Owner)
				do(t, releasing, first, relay, token)
			}
			settled := beside(func() (error, error) {
				_, err := w.store.Settle(t.Context(), &core.Settle{
					Owner: held.Owner, Lanes: held.lanes(), ClearNotes: held.lanes(),
				})
				return err, nil
			})
			acquired := beside(func() (core.AcquireAnswer, error) {
				return w.store.Acquire(t.Context(), core.Acquire{
					Owner: held.Owner, Tenure: outbox.NewID(), Lanes: []int16{60}, Max: 1,
				})
			})
			w.blocked(t, pid(releasing), wait)
			_, err := w.releaseText(t.Context(), releasing, first, held)
			_ = releasing.Rollback(t.Context())
			deadlocks := 0
			for _, err := range []error{err, get(t, "the settle", settled)} {
				var failed *pgconn.PgError
				if errors.As(err, &failed) && failed.Code == "40P01" {
					deadlocks++
				} else if err != nil {
					t.Error(err)
				}
			}
			if deadlocks > 0 != unsafe || len(get(t, "the acquisition", acquired).Lanes) != 1 {
				t.Errorf("%d deadlocks, and the first lock is the lane's: %t", deadlocks, unsafe)
			}
			w.end(t)
		}
		w.allAtOnce(t)
	})
}

// allAtOnce lets a relay do everything that locks its row or a lane's, side by side and often.
func (w *world) allAtOnce(t testing.TB) {
	t.Helper()
	ctx, held := t.Context(), w.hold(t, "1")
	note := core.Note{Owner: held.Owner, Tenure: held.at(held.lane(), 0).Tenure, Event: outbox.NewID()}
	var all sync.WaitGroup
	for _, call := range []func() error{
		func() error {
			tenure := outbox.NewID()
			_, err := w.store.Acquire(ctx, core.Acquire{Owner: held.Owner, Tenure: tenure, Lanes: allLanes(), Max: 9})
			return errors.Join(err, w.store.Release(ctx, core.Release{Owner: held.Owner, Tokens: []outbox.ID{tenure}}))
		},
		func() error {
			_, err := w.store.Settle(ctx, &core.Settle{Owner: held.Owner, Lanes: held.lanes(), ClearNotes: held.lanes()})
			return err
		},
		func() error {
			_, err := w.store.Note(ctx, note)
			return err
		},
		func() error {
			_, err := w.store.Heartbeat(ctx, core.Heartbeat{Owner: held.Owner, Number: w.beats.Add(1), Lease: lease})
			return err
		},
	} {
		all.Go(func() {
			for range 50 {
				if err := call(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := w.look(t, held.Owner).Held; !slices.Equal(got, held.lanes()) {
		t.Errorf("in the end the relay has lanes %v, want %v", got, held.lanes())
	}
}
