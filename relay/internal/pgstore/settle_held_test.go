package pgstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestWhatWasAcknowledgedIsPublished: an event that was read as ready and is held by now, in whatever way, was sent all
// the same. It is published if it may be, together with those that are as they were read; only what an operator, or a
// death, has taken out of the way stays as it is.
func TestWhatWasAcknowledgedIsPublished(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for now := core.Ready; now <= core.Discarded; now++ {
			for _, alone := range []bool{true, false} {
				found, other := w.found(t, w.add(t, "1", core.Ready)), w.found(t, w.add(t, "1", core.Ready))
				w.move(t, found.ID, now)
				want := now
				if now == core.Retrying || now == core.Waiting || now == core.Ready {
					want = core.Published
				}
				settle := held.publishing(found)
				if !alone {
					settle.Published = append(settle.Published, other)
				}
				if answer := w.settle(t, settle); !answer.Applied || len(answer.Unchanged) != 0 {
					t.Errorf("from %d: answered %+v", now, answer)
				}
				if state := w.state(t, found.ID); state != want {
					t.Errorf("from %d: is %d, want %d", now, state, want)
				}
				if state := w.state(t, other.ID); (state == core.Published) == alone {
					t.Errorf("from %d: another, beside it: %t, is %d", now, !alone, state)
				}
			}
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_events "+
			"WHERE (state = 6) <> (published_at IS NOT NULL)"); n != 0 {
			t.Errorf("%d events are published and have no time, or the other way round", n)
		}
	})
}

// TestASecondSendingChangesNothing: every kind of settle, from ready and from held, each alone and all together.
func TestASecondSendingChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		all := &core.Settle{Owner: held.Owner, Lanes: held.lanes()}
		twice := func(what string, settle *core.Settle) {
			t.Helper()
			if answer := w.settle(t, settle); !answer.Applied || len(answer.Unchanged) != 0 {
				t.Errorf("%s: answered %+v", what, answer)
			}
			before := w.everything(t)
			again := w.settle(t, settle)
			if after := w.everything(t); !slices.Equal(after, before) {
				t.Errorf("%s, sent again: changed to\n%s", what, strings.Join(after, "\n"))
			}
			if want := len(settle.Retry) + len(settle.Park) + len(settle.Dead); !again.Applied || len(again.Unchanged) != want {
				t.Errorf("%s, sent again: answered %+v, want %d unchanged", what, again, want)
			}
		}
		for from := core.Ready; from <= core.Waiting; from++ {
			for kind := range held.kinds(core.Found{}) {
				if from == core.Parked && !strings.HasPrefix(kind, "dead") {
					continue
				}
				add := func() *core.Settle { return held.kinds(w.found(t, w.add(t, "1", from)))[kind] }
				twice(kind, add())
				more := add()
				all.Published, all.Retry = append(all.Published, more.Published...), append(all.Retry, more.Retry...)
				all.Park, all.Dead = append(all.Park, more.Park...), append(all.Dead, more.Dead...)
			}
		}
		twice("wait", &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(), Wait: []core.Found{w.found(t, w.add(t, "1", core.Ready))},
		})
		twice("all", all)
	})
}

// TestAHeldRowThatStandsAlready: somebody has left one behind for an event that is ready. The settle goes on, and the
// two agree then.
func TestAHeldRowThatStandsAlready(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		orphan := func(kind core.State) core.Found {
			found := w.found(t, w.add(t, "1", kind))
			w.exec(t, "UPDATE {schema}.outbox_events SET state = 0 WHERE id = $1", found.ID.String())
			found.Version = 0
			return found
		}
		wants := map[string]core.State{
			"retry": core.Retrying, "park": core.Parked, "dead, blocks": core.DeadBlocking, "wait": core.Waiting,
		}
		for left := core.Retrying; left <= core.DeadBlocking; left++ {
			for kind, want := range wants {
				found := orphan(left)
				settles := held.kinds(found)
				settles["wait"] = &core.Settle{Owner: held.Owner, Lanes: held.lanes(), Wait: []core.Found{found}}
				settle := settles[kind]
				settle.Published = []core.Found{w.found(t, w.add(t, "1", core.Ready))}
				if answer := w.settle(t, settle); !answer.Applied || len(answer.Unchanged) != 0 || w.state(t, found.ID) != want ||
					w.state(t, settle.Published[0].ID) != core.Published {
					t.Errorf("%s beside kind %d: answered %+v, state %d", kind, left, answer, w.state(t, found.ID))
				}
				if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_held WHERE lane = $1 AND seq = $2 AND "+
					"(kind = 1) = (due IS NOT NULL)", found.Lane, found.Seq); n != 1 {
					t.Errorf("%s beside kind %d: a held row with a time that is not its own", kind, left)
				}
			}
		}
	})
}

// TestHalfAnEvent: a held row without its event, one whose event is settled, and an event that is held by no row. They
// are mistakes of whoever writes by hand. No call fails because of them or goes on for ever, and what is beside them is
// read and settled.
func TestHalfAnEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		halves := func() (list []core.Found) {
			for kind := core.Retrying; kind <= core.DeadBlocking; kind++ {
				without, settled, missing := w.found(t, w.add(t, "1", kind)), w.found(t, w.add(t, "1", kind)),
					w.found(t, w.add(t, "1", kind))
				w.exec(t, "UPDATE {schema}.outbox_events SET state = 6 WHERE id IN ($1, $2)", without.ID.String(),
					settled.ID.String())
				w.exec(t, "DELETE FROM {schema}.outbox_events WHERE id = $1", without.ID.String())
				w.exec(t, "DELETE FROM {schema}.outbox_held WHERE seq = $1", missing.Seq)
				list = append(list, without, settled, missing)
			}
			return list
		}
		ctx, giveUp := context.WithTimeout(t.Context(), patience)
		defer giveUp()
		list := halves()
		whole := w.add(t, "1", core.Retrying)
		ask := core.HeldAsk{Lane: held.lane(), Aggregate: aggregate("1"), Types: []string{"order_created"}}
		rows := must(w.store.HeldRows(ctx, core.HeldRows{Owner: held.Owner, Asks: []core.HeldAsk{ask}, Limit: 100}))(t)
		if got := ids(rows.Events); !slices.Contains(got, whole) || slices.Contains(got, list[0].ID) {
			t.Errorf("held are %v, want %v among them", got, whole)
		}
		keys := must(w.store.HeldKeys(ctx, core.HeldKeys{Owner: held.Owner, Lanes: core.AllLines(held.lanes()...)}))(t).Keys
		due := must(w.store.DueKeys(ctx, core.DueKeys{
			Owner: held.Owner, Lanes: []core.LaneFrom{{Lane: held.lane()}}, Limit: 100,
		}))(t).Keys
		if len(keys) != 1 || len(due) != 3 {
			t.Errorf("held are %+v, and due %+v", keys, due)
		}
		must(w.store.OldParked(ctx, core.OldParked{Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Limit: 100}))(t)
		if _, err := w.store.Unpark(ctx, core.Unpark{
			Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Types: []string{"order_created"},
		}); err != nil {
			t.Error(err)
		}
		for kind := range held.kinds(core.Found{}) {
			for _, asReady := range []bool{true, false} {
				settle := held.kinds(w.found(t, w.add(t, "1", core.Ready)))[kind]
				for _, half := range halves() {
					if asReady {
						half.Version = 0
					}
					more := held.kinds(half)[kind]
					settle.Published, settle.Retry = append(settle.Published, more.Published...), append(settle.Retry, more.Retry...)
					settle.Park, settle.Dead = append(settle.Park, more.Park...), append(settle.Dead, more.Dead...)
				}
				before := w.count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 0")
				if answer, err := w.store.Settle(ctx, settle); err != nil || !answer.Applied {
					t.Errorf("%s: answered %+v, %v", kind, answer, err)
				}
				if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 0"); n != before-1 {
					t.Errorf("%s: the event beside them was not settled", kind)
				}
			}
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq d JOIN {schema}.outbox_events e ON e.id = d.event_id "+
			"WHERE e.state NOT IN (1, 5)"); n != 0 {
			t.Errorf("%d dead letters of events that did not die", n)
		}
	})
}
