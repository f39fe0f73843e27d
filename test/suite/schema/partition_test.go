package schema

import (
	_ "embed"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

//go:embed testdata/partition.sql
var partitionSQL string

// TestEventsCanBecomePartitioned: partitions can come later without a change for anybody. The same
// producers and the same statements of the relay work on the partitioned table, and the guards hold.
func TestEventsCanBecomePartitioned(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		var events []string
		for range 10 {
			events = append(events, insertEvent(t, db, "1", 0))
		}
		tx := db.Begin(t)
		for _, statement := range []string{
			"SET LOCAL search_path = " + quote(db.Schema), partitionSQL, "SET LOCAL search_path = ''",
		} {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		contract := outbox.Define[struct{}](outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"})
		receipts, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), contract.New("1", struct{}{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		events = append(events, receipts[0].ID.String())
		db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '2', '{}', dedupe_key => 'k')")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events_new"); n != 2 {
			t.Fatalf("%d new events are in the new partition, want 2", n)
		}

		relay, lane := asPart(t, db, "relay"), laneOf(t, db, "1")
		read := column(t, relay, db.SQL("SELECT id::text FROM ("+relaySQL(t, "read")+") r WHERE id IS NOT NULL"),
			[]int16{lane}, []int64{0}, []int64{0}, []int32{100}, []int64{}, []int64{}, nil, nil)
		if !slices.Equal(read, events) {
			t.Fatalf("read %v, want %v in that order", read, events)
		}
		countRows(t, relay, db.SQL(relaySQL(t, "register")), relayOne, tokenOne, "one", "")
		if n := countRows(t, relay, db.SQL(relaySQL(t, "acquire")), []int16{lane}, 1, relayOne, tokenOne,
			tokenOne); n != 1 {
			t.Fatalf("took over %d lanes", n)
		}
		countRows(t, relay, db.SQL(relaySQL(t, "own_lanes")), relayOne, tokenOne)
		none, never := []string{}, []*time.Time{}
		for again := range 2 {
			var applied bool
			var held []int16
			var at int64
			var unchanged []string
			err := relay.QueryRow(t.Context(), db.SQL(relaySQL(t, "settle")), relayOne, tokenOne, []int16{lane}, events[1:],
				none, []int32{}, []int64{}, none, []int16{}, never, none, none, none, []int16{}, never,
				events[:1], []bool{true}, []int32{1}, []string{"orders"}, []string{"rejected"}, []string{""}, []int16{0},
				[]*time.Time{nil}, []int16{}).Scan(&applied, &held, &at, &unchanged)
			if err != nil || !applied || len(unchanged) != again {
				t.Errorf("time %d: the settle answered %v, %v, and left %v", again, applied, err, unchanged)
			}
		}
		if published, letters := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6"),
			db.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); published != 10 || letters != 1 {
			t.Errorf("%d are published, %d dead letters", published, letters)
		}
		wantRejected(t, db, "UPDATE {schema}.outbox_events SET payload_json = '{}'")
		wantRejected(t, db, "DELETE FROM {schema}.outbox_events")
	})
}
