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
				w.exec(t, "UPDATE {schema}.outbox_events SET next_attempt_at = $2::text::timestamptz WHERE id = $1",
					id.String(), at)
				rows := must(w.store.HeldRows(t.Context(), core.HeldRows{
					Asks: []core.HeldAsk{{Lane: held.lane(), Aggregate: aggregate("1"), Types: []string{"a"}}}, Limit: 100,
				}))(t).Events
				i := slices.IndexFunc(rows, func(e core.Event) bool { return e.ID == id })
				settle := &core.Settle{Owner: held.Owner, Lanes: held.lanes()}
				switch from := rows[i].Found(); kind {
				case 0:
					settle.Dead = []core.Death{{ID: id, From: from, Reason: "max_attempts"}}
				case 1:
					settle.Park = []core.Park{{ID: id, From: from}}
				case 2:
					settle.Retry = []core.Retry{{ID: id, From: from, Attempts: 7, Delay: time.Hour}}
				}
				if answer := w.settle(t, settle); len(answer.Unchanged) > 0 {
					t.Errorf("%s kind %d: unchanged", at, kind)
				}
				w.exec(t, "UPDATE {schema}.outbox_events SET state = 5 WHERE id = $1", id.String())
			}
		}
	})
}

func TestSettleOfWhatIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		a, b, c := w.add(t, "1", core.Ready), w.add(t, "1", core.Waiting), w.add(t, "1", core.Ready)
		gone := outbox.NewID()
		settle := &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(),
			Published: []outbox.ID{c, outbox.NewID()}, Wait: []outbox.ID{outbox.NewID()},
			Dead:  []core.Death{{ID: a, Reason: "max_attempts"}, {ID: gone, Reason: "max_attempts"}},
			Retry: []core.Retry{{ID: b}},
		}
		answer := w.settle(t, settle)
		want := []outbox.ID{gone, b}
		slices.SortFunc(want, func(x, y outbox.ID) int { return strings.Compare(x.String(), y.String()) })
		if !answer.Applied || !slices.Equal(answer.Unchanged, want) || w.state(t, a) != core.Dead ||
			w.state(t, b) != core.Waiting || w.state(t, c) != core.Published {
			t.Errorf("%+v want %v", answer, want)
		}
		d := w.add(t, "1", core.Ready)
		answer = w.settle(t, &core.Settle{
			Owner: held.Owner, Lanes: []int16{held.lane(), held.lane() + 1}, Dead: []core.Death{{ID: d, Reason: "max_attempts"}},
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
		touched, skipped, deleted := w.add(t, "1", core.Waiting), w.add(t, "1", core.Waiting), w.add(t, "1", core.Waiting)
		tx := w.begin(t)
		for _, statement := range []string{
			"UPDATE {schema}.outbox_events SET last_error = 'hand' WHERE id = '" + touched.String() + "'",
			"UPDATE {schema}.outbox_events SET state = 1, next_attempt_at = clock_timestamp() WHERE id = '" + skipped.String() +
				"'",
		} {
			if _, err := tx.Exec(t.Context(), w.sql(statement)); err != nil {
				t.Fatal(err)
			}
		}
		_ = deleted
		done := make(chan core.SettleAnswer, 1)
		go func() {
			from := core.Found{State: core.Waiting}
			answer, err := w.store.Settle(t.Context(), &core.Settle{
				Owner: held.Owner, Lanes: held.lanes(), Dead: []core.Death{
					{ID: touched, From: from, Reason: "max_attempts"}, {ID: skipped, From: from, Reason: "max_attempts"},
				}, Retry: []core.Retry{{ID: deleted, From: from}},
			})
			if err != nil {
				t.Error(err)
			}
			done <- answer
		}()
		w.blocked(t, tx.Conn().PgConn().PID(), 1)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer := <-done
		if !answer.Applied || !slices.Equal(answer.Unchanged, []outbox.ID{skipped}) || w.state(t, touched) != core.Dead ||
			w.state(t, skipped) != core.Retrying {
			t.Errorf("%+v touched %d skipped %d", answer, w.state(t, touched), w.state(t, skipped))
		}
	})
}
