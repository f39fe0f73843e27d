package pgstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

func TestSettleOfOddTimes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		for _, at := range []string{
			"-infinity", "4713-11-25 BC", "0001-01-01", "1500-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999+00",
			"1999-12-31 23:59:59.999999+00",
			"2000-01-01 00:00:00.000001+00", "infinity", "294276-12-31 23:59:59.999999+00", "294247-01-10 04:00:54.775807+00",
			"2024-06-01 12:00:00.123457+05:30",
		} {
			for kind := range 3 {
				id := w.addType(t, "1", "a", core.Retrying)
				w.heldAt(t, id, "timestamptz '"+at+"'")
				rows := must(w.store.HeldRows(t.Context(), core.HeldRows{
					Asks: []core.HeldAsk{{Lane: held.lane(), Aggregate: aggregate("1"), Types: []string{"a"}}}, Limit: 100,
				}))(t).Events
				i := slices.IndexFunc(rows, func(e core.Event) bool { return e.ID == id })
				settle := &core.Settle{Owner: held.Owner, Lanes: held.lanes()}
				switch from := rows[i].Found(); kind {
				case 0:
					settle.Dead = []core.Death{{Found: from, Reason: "max_attempts"}}
				case 1:
					settle.Park = []core.Park{{Found: from}}
				case 2:
					settle.Retry = []core.Retry{{Found: from, Attempts: 7, Delay: time.Hour}}
				}
				if answer := w.settle(t, settle); len(answer.Unchanged) > 0 {
					t.Errorf("%s kind %d: unchanged", at, kind)
				}
				w.move(t, id, core.Dead)
			}
		}
	})
}

func TestSettleOfWhatIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		a, b, c := w.add(t, "1", core.Ready), w.add(t, "1", core.Waiting), w.add(t, "1", core.Ready)
		seq := int64(1 << 40)
		missing := func() core.Found {
			seq++
			return core.Found{ID: outbox.NewID(), Lane: held.lane(), Seq: seq}
		}
		gone, asReady := missing(), w.found(t, b)
		asReady.Version = 0
		settle := &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(),
			Published: []core.Found{w.found(t, c), missing()}, Wait: []core.Found{missing()},
			Dead: []core.Death{
				{Found: w.found(t, a), Reason: "max_attempts"}, {Found: gone, Reason: "max_attempts"},
			},
			Retry: []core.Retry{{Found: asReady}},
		}
		answer := w.settle(t, settle)
		want := []outbox.ID{gone.ID, b}
		slices.SortFunc(want, func(x, y outbox.ID) int { return strings.Compare(x.String(), y.String()) })
		if !answer.Applied || !slices.Equal(answer.Unchanged, want) || w.state(t, a) != core.Dead ||
			w.state(t, b) != core.Waiting || w.state(t, c) != core.Published {
			t.Errorf("%+v want %v", answer, want)
		}
		d := w.add(t, "1", core.Ready)
		answer = w.settle(t, &core.Settle{
			Owner: held.Owner, Lanes: []int16{held.lane(), held.lane()%64 + 1},
			Dead: []core.Death{{Found: w.found(t, d), Reason: "max_attempts"}},
		})
		if answer.Applied || len(answer.Unchanged) > 0 || w.state(t, d) != core.Ready {
			t.Errorf("one lost: %+v", answer)
		}
	})
}

// A settle waits behind an operator's statement and a hand's edit of the same rows.
func TestSettleBehindAnOperator(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		touched, released, left := w.add(t, "1", core.Waiting), w.add(t, "1", core.Waiting), w.add(t, "1", core.Waiting)
		settle := &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(), Dead: []core.Death{
				{Found: w.found(t, touched), Reason: "max_attempts"}, {Found: w.found(t, released), Reason: "max_attempts"},
			}, Retry: []core.Retry{{Found: w.found(t, left)}},
		}
		tx := w.begin(t)
		do(t, tx, w.sql("UPDATE {schema}.outbox_events SET last_error = 'hand' WHERE id = $1"), touched.String())
		do(t, tx, w.sql("UPDATE {schema}.outbox_held SET kind = 1, due = clock_timestamp(), version = DEFAULT "+
			"WHERE lane = $1 AND seq = $2"), held.lane(), w.found(t, released).Seq)
		done := beside(func() (core.SettleAnswer, error) { return w.store.Settle(t.Context(), settle) })
		w.blocked(t, pid(tx), 1)
		commit(t, tx)
		answer := get(t, "the settle", done)
		if !answer.Applied || !slices.Equal(answer.Unchanged, []outbox.ID{released}) ||
			w.state(t, touched) != core.Dead || w.state(t, released) != core.Retrying || w.state(t, left) != core.Retrying {
			t.Errorf("%+v touched %d released %d left %d", answer, w.state(t, touched), w.state(t, released), w.state(t, left))
		}
	})
}
