package order_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// What is wrong between the two tables that say where an event stands is read from them, and found as what it is.
func TestMutatedTablesAreFound(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, " +
		"aggregate_id)"
	for name, mutant := range map[string]struct {
		state     int // in which the event is before
		statement string
		counter   check.Counter
		also      check.Counter // what follows from it
	}{
		"nothing, of one that waits":      {state: 3, statement: "SELECT"},
		"nothing, of one that is retried": {state: 1, statement: "SELECT"},
		"nothing, of one that is new":     {state: 0, statement: "SELECT"},
		"not held any more": {
			state: 2, statement: "DELETE FROM {schema}.outbox_held", counter: check.HeldWithoutRow,
		},
		"held, and still ready": {
			state: 3, statement: "UPDATE {schema}.outbox_events SET state = 0", counter: check.RowWithoutHeld,
		},
		"held, and dead": {
			state: 3, statement: "UPDATE {schema}.outbox_events SET state = 5", counter: check.RowWithoutHeld,
			also: check.DeadWithoutLetter,
		},
		"held in another lane": {
			state: 3, statement: "UPDATE {schema}.outbox_held SET lane = lane % 64 + 1", counter: check.RowWithoutHeld,
			also: check.HeldWithoutRow,
		},
		"of no event": {
			state: 0, statement: insert + " VALUES (1, 999, 3, NULL, 'n', 't', 'a', '1')", counter: check.RowWithoutHeld,
		},
		"under another name": {
			state: 3, statement: "UPDATE {schema}.outbox_held SET aggregate_id = '2'", counter: check.HeldDiffers,
		},
		"waiting for a time": {
			state: 3, statement: "UPDATE {schema}.outbox_held SET due = now()", counter: check.HeldDiffers,
		},
		"a state that there is not": {
			state: 3, statement: "UPDATE {schema}.outbox_events SET state = 3", counter: check.Malformed,
			also: check.RowWithoutHeld,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
				var id outbox.ID
				err := db.Pool.QueryRow(t.Context(),
					db.SQL("SELECT id FROM {schema}.outbox_emit('order_placed', 'order', '1', '{}')")).Scan(&id)
				if err != nil {
					t.Fatal(err)
				}
				db.Exec(t, states.Move, id, mutant.state)
				db.Exec(t, mutant.statement)
				history, err := torture.Events(t.Context(), db.Pool, `"`+db.Schema+`"`)
				if err != nil {
					t.Fatal(err)
				}
				written := &check.Tx{Key: "k", Outcome: check.OK, Events: []check.Event{{ID: id, Topic: "orders"}}}
				history = append(history, check.Record{Tx: written}, check.Record{End: &check.End{Held: true}})
				verdict := history.Check(check.Floor{Undrained: true})
				for _, counter := range []check.Counter{
					check.HeldWithoutRow, check.RowWithoutHeld, check.HeldDiffers, check.DeadWithoutLetter, check.Malformed,
				} {
					want := 0
					if mutant.counter != 0 && (counter == mutant.counter || counter == mutant.also) {
						want = 1
					}
					if got := verdict.Count(counter); got != want {
						t.Errorf("%s=%d, want %d\n%v", counter, got, want, verdict.Problems())
					}
				}
			})
		})
	}
}
