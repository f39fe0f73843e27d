package pgstore_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// TestADayOfBeats: somebody holds a snapshot for a day, and no beat that was deleted since can be cleared away. What
// relays do all the time touches as many buffers as before.
func TestADayOfBeats(t *testing.T) {
	t.Parallel()
	const relays, perDay = 8, 8640 // a beat every ten seconds
	onEach(t, func(t *testing.T, w *world) {
		for _, table := range []string{"outbox_relays", "outbox_beats", "outbox_lanes"} {
			w.exec(t, "ALTER TABLE {schema}."+table+" SET (autovacuum_enabled = false)")
		}
		var held holder
		for i := range relays {
			held = w.take(t, w.register(t), 8, allLanes()[8*i:8*i+8]...)
		}
		conn := w.connect(t, "SET plan_cache_mode = force_generic_plan")
		fresh := w.costs(t, conn, held)
		snapshot := must(w.owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
		defer func() { _ = snapshot.Rollback(t.Context()) }()
		if _, err := snapshot.Exec(t.Context(), w.sql("SELECT count(*) FROM {schema}.outbox_beats")); err != nil {
			t.Fatal(err)
		}
		w.exec(t, `INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, recovered)
			SELECT r.id, 1000 + i, clock_timestamp() + interval '1 hour', r.lanes, array_fill(1::bigint, ARRAY[8]), 
			       array_fill(true, ARRAY[8])
			  FROM generate_series(1, $1::integer) i CROSS JOIN {schema}.outbox_relays r`, perDay)
		w.exec(t, "DELETE FROM {schema}.outbox_beats WHERE number < 1000 + $1::integer - 1", perDay)
		after := w.costs(t, conn, held)
		for name, before := range fresh {
			t.Logf("%s: %d buffers, and %d after a day", name, before, after[name])
			if after[name] > before+2*relays { // the index has become higher; a day's beats are hundreds of pages
				t.Errorf("%s: %d buffers, and %d after a day", name, before, after[name])
			}
		}
		_, all := planned{name: "all beats", statement: w.sql(
			"SELECT relay, max(number) FROM {schema}.outbox_beats WHERE number > $1 GROUP BY relay"), args: []any{int64(0)}}.
			plan(t, conn)
		if all < 10*fresh["peers"] {
			t.Errorf("to look at all beats touches %d buffers: this test does not test", all)
		}
	})
}

// costs are the buffers of what relays do all the time.
func (w *world) costs(t *testing.T, conn *pgx.Conn, held holder) map[string]int {
	t.Helper()
	relay, token := pgstore.Asker(held.Owner)
	read := core.Read{Owner: held.Owner}
	for _, lane := range held.lanes() {
		read.Lanes = append(read.Lanes, core.LaneRead{Lane: lane, Limit: 8})
	}
	reading, readArgs := w.store.ReadStatement(read)
	settling, settleArgs := w.store.SettleStatement(&core.Settle{
		Owner: held.Owner, Lanes: held.lanes(), Published: []core.Found{{ID: outbox.NewID()}},
	})
	number := w.count(t, "SELECT max(number) FROM {schema}.outbox_beats WHERE relay = $1", held.Relay.String())
	costs := map[string]int{}
	for _, p := range []planned{
		{name: "own", statement: statement("own", w), args: []any{relay, token}},
		{name: "peers", statement: statement("peers", w), args: []any{[]string{}}},
		{name: "beat", statement: statement("beat", w), args: []any{
			relay, token, int64(number + 1), int64(1e6),
			[]int16{},
			[]int64{},
			[]bool{},
			[]int16{},
			[]string{},
			"",
			int64(number - 1), int64(number),
			[]int64{},
		}},
		{name: "end", statement: statement("end_expired", w), args: []any{relay, int32(8), false}},
		{name: "read", statement: reading, args: readArgs},
		{name: "settle", statement: settling, args: settleArgs},
	} {
		for range 2 { // the first looks up more
			_, costs[p.name] = p.plan(t, conn)
		}
	}
	return costs
}
