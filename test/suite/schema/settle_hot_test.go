package schema

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// prepareSettle is before the relay's own statement, in which nothing but publishes are: with one plan for all batches.
const prepareSettle = `SET LOCAL plan_cache_mode = force_generic_plan;
	PREPARE settle (uuid, uuid, smallint[], smallint[], bigint[], bigint, bigint) AS `

// batchSize is as much as a settle of the relay has at most, by default.
const batchSize = 500

// settled is what settles did to the table.
type settled struct {
	events, hot int
	cost        cost // of the batches in which no page was written whole
	counted     int  // events of those
}

// settleAll publishes everything that is ready, a batch after the other in the order of numbers.
func settleAll(t testing.TB, db *pgtest.DB) (all settled) {
	t.Helper()
	db.Exec(t, `INSERT INTO {schema}.outbox_relays (id, token, name, lanes)
		SELECT $1, $2, 'one', array_agg(lane) FROM {schema}.outbox_lanes ON CONFLICT (id) DO NOTHING`, relayOne, tokenOne)
	for {
		batch := settleBatch(t, db)
		if batch.events == 0 {
			return all
		}
		all.events += batch.events
		all.hot += batch.hot
		if batch.cost.images == 0 {
			all.counted += batch.events
			all.cost.walRecords += batch.cost.walRecords
			all.cost.walBytes += batch.cost.walBytes
			all.cost.buffers += batch.cost.buffers
		}
	}
}

func settleBatch(t testing.TB, db *pgtest.DB) (batch settled) {
	t.Helper()
	// Of this transaction, and of those before it in the session that are not reported yet.
	counted := func(tx pgx.Tx) (events, hot int, err error) {
		err = tx.QueryRow(t.Context(), db.SQL(`SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
			WHERE relid = '{schema}.outbox_events'::regclass`)).Scan(&events, &hot)
		return events, hot, err
	}
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		var lanes, numbers *string
		var first, last *int64
		err := tx.QueryRow(t.Context(), db.SQL(`SELECT array_agg(lane)::text, array_agg(seq)::text, min(seq), max(seq)
			FROM (SELECT lane, seq FROM {schema}.outbox_events WHERE state = 0 ORDER BY seq LIMIT $1) b`),
			batchSize).Scan(&lanes, &numbers, &first, &last)
		if err != nil || lanes == nil {
			return err
		}
		prepare := db.SQL(prepareSettle + relaySQL(t, "settle_published"))
		if _, err := tx.Exec(t.Context(), prepare, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		eventsBefore, hotBefore, err := counted(tx)
		if err != nil {
			return err
		}
		batch.cost = explain(t, db, tx, fmt.Sprintf("EXECUTE settle ('%s', '%s', '{}', '%s', '%s', %d, %d)", relayOne,
			tokenOne, *lanes, *numbers, *first, *last))
		if batch.events, batch.hot, err = counted(tx); err != nil {
			return err
		}
		batch.events, batch.hot = batch.events-eventsBefore, batch.hot-hotBefore
		_, err = tx.Exec(t.Context(), "DEALLOCATE settle")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// fillSizes writes events of every size from the least to where they go to TOAST, a few pages of each, and two beyond.
// The least are written by hand: an envelope alone makes a row larger.
func fillSizes(t testing.TB, db *pgtest.DB) {
	t.Helper()
	db.Exec(t, noVacuum)
	db.Exec(t, `INSERT INTO {schema}.outbox_events (id, namespace, event_type, aggregate_type, aggregate_id, payload_json)
		SELECT id, 'n', 't', 'a', '1', ('{"eventId":"' || id || '"' || repeat(' ', bytes) || '}')::json
		  FROM (SELECT {schema}.outbox_uuid7() AS id, bytes
		          FROM generate_series(0, 200, 8) bytes, generate_series(1, 100) ORDER BY bytes) g`)
	sizes := []int{2500, 12000}
	for bytes := 0; bytes <= 1848; bytes += 8 { // rows grow by 8 bytes
		sizes = append(sizes, bytes)
	}
	fill(t, db, 40, sizes...)
}

// holdSnapshot is a transaction that looks at the table and stays: no old version of a row goes away.
func holdSnapshot(t testing.TB, db *pgtest.DB) {
	t.Helper()
	tx, err := db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(t.Context()) })
	if _, err := tx.Exec(t.Context(), db.SQL("SELECT count(*) FROM {schema}.outbox_events")); err != nil {
		t.Fatal(err)
	}
}

// TestEverySettleIsHOT: the new version of a row stands on the page of the old one, whatever its size, whether it is
// settled soon or late, and under a snapshot that somebody holds. Then no index is touched.
func TestEverySettleIsHOT(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		for name, write := range map[string]func(*pgtest.DB) settled{
			"late": func(db *pgtest.DB) settled {
				fillSizes(t, db)
				return settleAll(t, db)
			},
			"late, under a snapshot": func(db *pgtest.DB) settled {
				holdSnapshot(t, db)
				fillSizes(t, db)
				return settleAll(t, db)
			},
			"soon, under a snapshot": func(db *pgtest.DB) (all settled) {
				holdSnapshot(t, db)
				for range 10 {
					fill(t, db, 250, 500)
					batch := settleAll(t, db)
					all.events, all.hot = all.events+batch.events, all.hot+batch.hot
				}
				return all
			},
		} {
			db := pgtest.New(t, server)
			all := write(db)
			t.Logf("%s: %d events, %d settled on their page", name, all.events, all.hot)
			if all.events < 2500 || all.hot != all.events {
				t.Errorf("%s: %d of %d events were settled on their page", name, all.hot, all.events)
			}
		}
	})
}

// TestASettleThatIsNotHOTIsSeen: what people do to the table, and what one would set at first.
func TestASettleThatIsNotHOTIsSeen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		for change, most := range map[string]float64{
			"CREATE INDEX m ON {schema}.outbox_events (published_at)":        0,
			"CREATE INDEX m ON {schema}.outbox_events (seq) WHERE state = 0": 0,
			"ALTER TABLE {schema}.outbox_events SET (fillfactor = 50)":       0.9999,
			"ALTER TABLE {schema}.outbox_events SET (fillfactor = 55)":       0.95,
		} {
			db := pgtest.New(t, server)
			db.Exec(t, change)
			fillSizes(t, db)
			all := settleAll(t, db)
			share := float64(all.hot) / float64(all.events)
			t.Logf("%s: %.4f of %d events were settled on their page", change, share, all.events)
			if all.events == 0 || share > most {
				t.Errorf("%s: %.4f of %d events were settled on their page: this test would not see it", change, share, all.events)
			}
		}
	})
}

// TestWhatASettleCosts: one WAL record for an event, with the row (the servers write WAL for logical decoding, which
// has all of it) and little more; and the pages on the way to it. A payload in TOAST stays where it is, and costs the
// record of a lock: PostgreSQL lets go of the page meanwhile. With one index more the bounds do not hold.
func TestWhatASettleCosts(t *testing.T) {
	t.Parallel()
	const events, beyondRow, mostBuffers = 2000, 100, 6
	onEach(t, func(t *testing.T, server pgtest.Server) {
		for _, size := range []struct {
			payload, row int
			mostRecords  float64
		}{{100, 365, 1.1}, {480, 745, 1.1}, {12000, 250, 2.1}} {
			measure := func(change string) (records, bytes, buffers float64) {
				db := pgtest.New(t, server)
				db.Exec(t, change)
				fill(t, db, events, size.payload)
				// A checkpoint in the middle of it has each page written whole: what it takes part in does not count.
				all := settleAll(t, db)
				for all.counted == 0 {
					fill(t, db, events, size.payload)
					all = settleAll(t, db)
				}
				n := float64(all.counted)
				return float64(all.cost.walRecords) / n, float64(all.cost.walBytes) / n, float64(all.cost.buffers) / n
			}
			mostBytes := float64(size.row + beyondRow)
			for change, holds := range map[string]bool{
				"SELECT": true, "CREATE INDEX m ON {schema}.outbox_events (published_at)": false,
			} {
				records, bytes, buffers := measure(change)
				t.Logf("settle of events with %d bytes, %s: %.2f WAL records, %.0f bytes of WAL, %.1f buffers each", size.payload,
					change, records, bytes, buffers)
				if within := records <= size.mostRecords && bytes <= mostBytes && buffers <= mostBuffers; within != holds {
					t.Errorf("%d bytes, %s: within %.1f records, %.0f bytes and %d buffers: %t", size.payload, change,
						size.mostRecords, mostBytes, mostBuffers, within)
				}
			}
		}
	})
}
