package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// An event is held exactly while it has a row in outbox_held, and that row says how.
func TestHeldRows(t *testing.T) {
	t.Parallel()
	open := func(state check.State, records ...check.Record) check.History {
		return append(check.History{wrote(1), row(1, state), ended(check.End{Held: true})}, records...)
	}
	sent := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), delivery(1, 1), row(1, check.Published), ended(check.End{Held: true})},
			records...)
	}
	dead := func(state check.State, blocking bool, records ...check.Record) check.History {
		return append(open(state, letter(1, blocking, 0)), records...)
	}
	discarded := func(records ...check.Record) check.History {
		return append(open(check.Discarded, action(1, check.Discard, 0)), records...)
	}
	alien, never, due := heldRow(1, check.Waiting), heldRow(1, check.Retrying), heldRow(1, check.Parked)
	alien.Held.Alien, never.Held.Due, due.Held.Due = true, false, true
	nowhere := heldRow(2, check.Waiting)
	nowhere.Held.ID = check.ID{}
	definitions := []definition{
		{
			name: "of a published event", count: check.RowWithoutHeld, bad: sent(heldRow(1, check.Retrying)), good: sent(),
		},
		{
			name: "of a ready event", count: check.RowWithoutHeld, bad: open(check.Ready, heldRow(1, check.Waiting)),
			good: open(check.Ready),
		},
		{
			name: "of a dead event", count: check.RowWithoutHeld,
			bad: dead(check.Dead, false, heldRow(1, check.DeadBlocking)), good: dead(check.Dead, false),
		},
		{
			name: "of a discarded event", count: check.RowWithoutHeld, bad: discarded(heldRow(1, check.DeadBlocking)),
			good: discarded(),
		},
		{name: "of nothing", count: check.RowWithoutHeld, bad: sent(nowhere), good: sent()},
		{
			name: "of what retention has deleted", count: check.RowWithoutHeld,
			bad: check.History{
				wrote(1), delivery(1, 1), heldRow(1, check.Retrying), ended(check.End{Retention: true, Dumped: true, Held: true}),
			},
			good: check.History{wrote(1), delivery(1, 1), ended(check.End{Retention: true, Dumped: true, Held: true})},
		},
		{
			name: "of what never committed", count: check.Phantom, bad: sent(heldRow(9, check.Waiting)), good: sent(),
		},
		{
			name: "as another kind", count: check.HeldDiffers, bad: open(check.Waiting, heldRow(1, check.Parked)),
			good: open(check.Waiting, heldRow(1, check.Waiting)),
		},
		{
			name: "under other names", count: check.HeldDiffers, bad: open(check.Waiting, alien),
			good: open(check.Waiting, heldRow(1, check.Waiting)),
		},
		{
			name: "a retry that is never due", count: check.HeldDiffers, bad: open(check.Retrying, never),
			good: open(check.Retrying, heldRow(1, check.Retrying)),
		},
		{
			name: "parked, and due", count: check.HeldDiffers, bad: open(check.Parked, due),
			good: open(check.Parked, heldRow(1, check.Parked)),
		},
	}
	for _, held := range []check.State{check.Retrying, check.Parked, check.Waiting} {
		definitions = append(definitions, definition{
			name: held.String(), count: check.HeldWithoutRow, bad: open(held), good: open(held, heldRow(1, held)),
		})
	}
	definitions = append(definitions,
		definition{
			name: "dead and blocking", count: check.HeldWithoutRow, bad: dead(check.DeadBlocking, true),
			good: dead(check.DeadBlocking, true, heldRow(1, check.DeadBlocking)),
		},
		definition{
			name: "of a store without such a table", count: check.HeldWithoutRow, bad: open(check.Waiting),
			good: check.History{wrote(1), row(1, check.Waiting), ended(check.End{})},
		})
	testAll(t, definitions)
}

// The two tables together, written out once more: what the column says, and the kind, 0 for no row in outbox_held.
func TestStateOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		column, kind int16
		want         check.State
	}{
		{0, 0, check.Ready},
		{1, 1, check.Retrying},
		{1, 2, check.Parked},
		{1, 3, check.Waiting},
		{1, 4, check.DeadBlocking},
		{5, 0, check.Dead},
		{6, 0, check.Published},
		{7, 0, check.Discarded},
		// The column decides: what is left in outbox_held is told on by itself.
		{0, 3, check.Ready},
		{5, 4, check.Dead},
		{6, 1, check.Published},
		{7, 4, check.Discarded},
		// Nobody knows how it is held, but it is not finished.
		{1, 0, check.Retrying},
		// What the column cannot say.
		{2, 0, check.Absent},
		{3, 3, check.Absent},
		{4, 4, check.Absent},
		{8, 0, check.Absent},
		{300, 0, check.Absent},
		{-1, 0, check.Absent},
	} {
		if got := check.StateOf(c.column, c.kind); got != c.want {
			t.Errorf("column %d, kind %d: %s, want %s", c.column, c.kind, got, c.want)
		}
	}
}
