package pgstore_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// TestSettlesTouchNoIndex: the new version of a row that is published stands on the page of the old one, and no index
// is written (HOT): for rows of all sizes, in batches as they were written and across many pages, and while somebody's
// snapshot keeps all old versions. An index that names what a publish changes, or pages without room, end that.
func TestSettlesTouchNoIndex(t *testing.T) {
	t.Parallel()
	const events, half, batch = 6000, 3000, 500
	onEach(t, func(t *testing.T, w *world) {
		w.quiet(t)
		pool := w.open(t, w.url, func(config *pgxpool.Config) {
			pgstore.Configure(config, lease)
			config.MaxConns = 1 // which counts
		})
		store, held := pgstore.New(pool, w.schema), w.acquire(t)
		// share is how many of the updates since the last call were HOT, in percent.
		var updates, hot int
		share := func() float64 {
			t.Helper()
			if _, err := pool.Exec(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
				t.Fatal(err)
			}
			const of = "SELECT pg_stat_get_tuples_%s('{schema}.outbox_events'::regclass)"
			u, h := w.count(t, fmt.Sprintf(of, "updated")), w.count(t, fmt.Sprintf(of, "hot_updated"))
			defer func() { updates, hot = u, h }()
			if u-updates != events {
				t.Fatalf("%d updates were counted, want %d", u-updates, events)
			}
			return 100 * float64(h-hot) / float64(u-updates)
		}
		for _, c := range []struct {
			name, before, after string
			snapshot            bool
			least, most         float64
		}{
			{name: "as it is", least: 100, most: 100},
			{name: "under a snapshot", snapshot: true, least: 100, most: 100},
			{
				name: "an index on what changes", before: "CREATE INDEX state ON {schema}.outbox_events (state)",
				after: "DROP INDEX {schema}.state", most: 0,
			},
			{
				name: "full pages", before: "ALTER TABLE {schema}.outbox_events SET (fillfactor = 100)",
				after: "ALTER TABLE {schema}.outbox_events SET (fillfactor = 49)", most: 90,
			},
		} {
			if c.before != "" {
				w.exec(t, c.before)
			}
			// From the smallest to those that are just not toasted.
			w.exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json)
				SELECT {schema}.outbox_lane('default', 'order', i::text), id, 'order_created', 'order', i::text,
				       format('{"eventId":"%s","data":"%s"}', id, repeat('x', (i * 7919) % 1700))::json
				  FROM (SELECT i, {schema}.outbox_uuid7() AS id FROM generate_series(1, $1::integer) i OFFSET 0) g`, events)
			var snapshot pgx.Tx
			if c.snapshot {
				snapshot = must(w.owner.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead}))(t)
				do(t, snapshot, "SELECT pg_current_snapshot()")
			}
			ready := someFound(t, w, "e.state = 0 ORDER BY e.seq")
			for i := 0; i < events; i += batch {
				settle := &core.Settle{Owner: held.Owner, Lanes: allLanes()}
				for j := range batch { // the first half as they were written, the others from everywhere
					at := i + j
					if at >= half {
						at = half + (at-half)*7%half
					}
					settle.Published = append(settle.Published, ready[at])
				}
				answer, err := store.Settle(t.Context(), settle)
				if err != nil || !answer.Applied {
					t.Fatalf("%s: answered %+v, %v", c.name, answer, err)
				}
			}
			if got := share(); got < c.least || got > c.most {
				t.Errorf("%s: %.2f%% of the updates are HOT, want %v to %v", c.name, got, c.least, c.most)
			}
			if c.snapshot {
				commit(t, snapshot)
			}
			if c.after != "" {
				w.exec(t, c.after)
			}
		}
	})
}
