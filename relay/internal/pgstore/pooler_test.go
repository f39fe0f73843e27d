package pgstore_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// TestQueryModes: every method works in every mode of pgx, and through a pooler that lends connections for
// a transaction in the modes that were made for it.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode   pgx.QueryExecMode
		pooler bool
	}{
		"cache_statement":            {mode: pgx.QueryExecModeCacheStatement},
		"cache_describe":             {mode: pgx.QueryExecModeCacheDescribe},
		"describe_exec":              {mode: pgx.QueryExecModeDescribeExec},
		"exec":                       {mode: pgx.QueryExecModeExec},
		"simple_protocol":            {mode: pgx.QueryExecModeSimpleProtocol},
		"pgbouncer, exec":            {mode: pgx.QueryExecModeExec, pooler: true},
		"pgbouncer, cache_describe":  {mode: pgx.QueryExecModeCacheDescribe, pooler: true},
		"pgbouncer, simple_protocol": {mode: pgx.QueryExecModeSimpleProtocol, pooler: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, postgres18())
			url := w.url
			if c.pooler {
				url = pgBouncer()
			}
			pool := w.open(t, url, func(config *pgxpool.Config) {
				config.ConnConfig.DefaultQueryExecMode = c.mode
				config.MaxConns = 4
				pgstore.Configure(config, lease)
			})
			w.store = pgstore.New(pool, w.schema)
			checkContent(t, w, w.store)
			everyMethod(t, w)
			// Several at once, so that the pooler lends one connection to many.
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 5 {
						w.fence(t)
						w.read(t, core.Read{Lanes: []core.LaneRead{{Lane: 1, Limit: 1}}, Exclude: []string{"x"}})
					}
				})
			}
			all.Wait()
		})
	}
}

// everyMethod calls each once and looks at its effect.
func everyMethod(t *testing.T, w *world) {
	t.Helper()
	held := w.hold(t, "1")
	progress := held.at(held.lane(), 1)
	progress.Needs = []string{"it's"}
	beat := w.beat(t, core.Heartbeat{
		Owner: held.Owner, Register: &core.Registration{Name: "r", Types: []string{"a"}, Topics: []string{"a's"}},
		Lanes: []core.Progress{progress}, Met: []outbox.ID{outbox.NewID()},
	})
	if beat.Ended || !slices.Equal(beat.Held, held.lanes()) || len(beat.Relays) != 1 || beat.Relays[0].ID != held.Relay ||
		!slices.Equal(beat.Relays[0].KnownTypes, []string{"a"}) || beat.Lanes[held.lane()-1].Owner != held.Relay {
		t.Fatalf("heartbeat: %+v", beat)
	}
	look, err := w.store.Heartbeat(t.Context(), core.Heartbeat{Owner: held.Owner})
	if err != nil || look.Ended || !slices.Equal(look.Held, held.lanes()) {
		t.Errorf("look: %+v, %v", look, err)
	}
	if err := w.store.Barrier(t.Context(), ""); err != nil {
		t.Errorf("barrier: %v", err)
	}
	settle := oneOfEach(t, w, held)
	writer := w.begin(t)
	w.insert(t, writer, "1", "order_created")
	fence := w.fence(t)
	if len(fence.Writers) != 1 || fence.Last < 9 {
		t.Errorf("fence: %+v", fence)
	}
	answer := w.read(t, core.Read{
		Owner: held.Owner, Lanes: []core.LaneRead{{Lane: held.lane(), Limit: 100}}, Exclude: []string{"another"},
		Writers: []core.OpenWriter{{XID: fence.Writers[0].XID, Low: 5}, {XID: 3, Low: 5}},
	})
	if len(answer.Events) != 8 || !slices.Equal(answer.Gone, []uint64{3}) {
		t.Errorf("read: %d events, gone %v", len(answer.Events), answer.Gone)
	}
	for _, event := range []outbox.ID{settle.Published[0].ID, {}, settle.Published[1].ID} {
		if ok, err := w.store.Note(t.Context(), core.Note{
			Owner: held.Owner, Tenure: progress.Tenure, Event: event, Outlived: true,
		}); err != nil || !ok {
			t.Errorf("note: %v, %v", ok, err)
		}
	}
	if answer := w.settle(t, settle); !answer.Applied {
		t.Errorf("settle: %+v", answer)
	}
	if answer := w.settle(t, &core.Settle{
		Owner: held.Owner, Lanes: settle.Lanes, Published: settle.Wait,
	}); !answer.Applied || w.state(t, settle.Wait[0].ID) != core.Published {
		t.Errorf("settle: %+v", answer)
	}
	if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_dlq"); n != 2 {
		t.Errorf("settle: %d dead letters", n)
	}
	everyLook(t, w, held, settle)
	if err := w.store.SaveRoutes(t.Context(), held.Relay,
		[]core.RouteStatus{{Topic: "orders", Paused: true, Error: "down"}}); err != nil {
		t.Errorf("save routes: %v", err)
	}
	again := w.take(t, held.Owner, 2, 1, 2)
	if err := w.store.Release(t.Context(), core.Release{
		Owner: held.Owner, Lanes: []core.Progress{held.at(held.lane(), 5)}, Tokens: []outbox.ID{again.tenure},
	}); err != nil || len(again.taken) != 2 {
		t.Errorf("release: took %v, %v", again.taken, err)
	}
	if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL"); n != 0 {
		t.Errorf("release: %d lanes are held", n)
	}
	if ended := w.end(t); !slices.Equal(ended, []outbox.ID{held.Relay}) || !w.isEnded(t, held.Owner) {
		t.Errorf("end expired: %v", ended)
	}
	last := w.register(t)
	if err := w.store.Release(t.Context(), core.Release{Owner: last, End: true}); err != nil || !w.isEnded(t, last) {
		t.Errorf("leave: %v", err)
	}
	if err := writer.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}

// everyLook looks at what the settle has left held.
func everyLook(t *testing.T, w *world, held holder, settle *core.Settle) {
	t.Helper()
	keys, err := w.store.HeldKeys(t.Context(), core.HeldKeys{Owner: held.Owner, Lanes: core.AllLines(held.lanes()...)})
	if err != nil || len(keys.Keys) != 1 {
		t.Errorf("held keys: %+v, %v", keys, err)
	}
	if due, err := w.store.DueKeys(t.Context(), core.DueKeys{
		Owner: held.Owner, Lanes: []core.LaneFrom{{Lane: held.lane()}}, Exclude: []string{"x"}, Limit: 9,
	}); err != nil || len(due.Keys) != 1 {
		t.Errorf("due keys: %+v, %v", due, err)
	} else if due, err = w.store.DueKeys(t.Context(), core.DueKeys{
		Owner: held.Owner, Lanes: []core.LaneFrom{{Lane: held.lane(), After: due.Keys[0].Place}}, Limit: 9,
	}); err != nil || len(due.Keys) != 0 {
		t.Errorf("due keys behind the last: %+v, %v", due, err)
	}
	asks := []core.HeldAsk{
		{Lane: held.lane(), Aggregate: aggregate("1"), Types: []string{"order_created", "x"}},
		{Lane: held.lane(), Aggregate: aggregate("1"), Types: []string{"order_created"}},
	}
	if rows, err := w.store.HeldRows(t.Context(), core.HeldRows{
		Owner: held.Owner, Asks: asks, Limit: 9,
	}); err != nil || len(rows.Events) != 8 {
		t.Errorf("held rows: %d, %v", len(rows.Events), err)
	}
	if parked, err := w.store.OldParked(t.Context(), core.OldParked{
		Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Exclude: []string{"x"}, Limit: 9,
	}); err != nil || len(parked.Events) != 1 {
		t.Errorf("old parked: %d, %v", len(parked.Events), err)
	}
	if _, err := w.store.Unpark(t.Context(), core.Unpark{
		Owner: held.Owner, Lanes: core.FromStart(held.lanes()...), Types: []string{"order_created"},
	}); err != nil || w.state(t, settle.Park[0].ID) != core.Retrying {
		t.Errorf("unpark: %v", err)
	}
	if found, err := w.store.Sweep(t.Context(), core.Sweep{
		Owner: held.Owner, Floors: []core.Floor{{Lane: held.lane(), Seq: 99}}, Limit: 9,
	}); err != nil || len(found.Found) != 0 {
		t.Errorf("sweep: %v, %v", found, err)
	}
}
