package emit

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// withLookups runs schema/optional/lookups.sql, twice, and answers a connection whose search_path is the schema. The
// index is not built concurrently: that would wait for the transactions of all other tests.
func (p env) withLookups(t *testing.T) *pgx.Conn {
	t.Helper()
	script, err := os.ReadFile("../../../schema/optional/lookups.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	blocking := strings.Replace(string(script), "INDEX CONCURRENTLY", "INDEX", 1)
	for range 2 {
		if _, err := conn.Exec(t.Context(), "SET search_path = "+p.Schema+";"+blocking); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// fillLookups makes 20,000 published events of 20 types, one per second since 2026 began, and each published a second
// after it was made.
func (p env) fillLookups(t *testing.T) {
	t.Helper()
	p.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, created_at, published_at, state, event_type, aggregate_type,
			aggregate_id, payload_json)
		SELECT {schema}.outbox_lane('default', 'order', (n % 5000)::text), e.id, e.at, e.at + interval '1 s', 6,
		       'order_event_' || n % 20, 'order', n % 5000, ('{"eventId":"' || e.id || '"}')::json
		  FROM generate_series(1, 20000) n
		 CROSS JOIN LATERAL (SELECT timestamptz '2026-01-01 00:00 UTC' + n * interval '1 s' AS at) s
		 CROSS JOIN LATERAL (SELECT s.at, (lpad(to_hex((extract(epoch FROM s.at) * 1000)::bigint), 12, '0') || '7'
		       || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid AS id) e`)
	p.Exec(t, "ANALYZE {schema}.outbox_events")
}

func TestLookupsAreByIndex(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		conn := p.withLookups(t)
		p.fillLookups(t)
		for _, look := range []struct {
			by, query, index string
			rows             int
		}{
			{
				"event type", `SELECT seq, id FROM outbox_events WHERE event_type = 'order_event_7' ORDER BY seq DESC LIMIT 100`,
				"outbox_events_event_type", 100,
			},
			{
				"publish", `SELECT seq, id FROM outbox_events
					WHERE published_at >= '2026-01-01 01:00 UTC' AND published_at < '2026-01-01 01:01 UTC'
					AND id >= outbox_id_at('2026-01-01 00:55 UTC') AND id < outbox_id_at('2026-01-01 01:02 UTC')`,
				"outbox_events_id", 60,
			},
			{
				"aggregate", `SELECT seq, id FROM outbox_events WHERE aggregate_type = 'order' AND aggregate_id = '4711'
					ORDER BY seq DESC`,
				"outbox_events_aggregate", 4,
			},
		} {
			plan := collect(t, conn, "EXPLAIN (COSTS OFF) "+look.query)
			if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") || !strings.Contains(text, look.index) {
				t.Errorf("by %s:\n%s", look.by, text)
			}
			if rows := collect(t, conn, "SELECT l::text FROM ("+look.query+") l"); len(rows) != look.rows {
				t.Errorf("by %s: %d events, want %d", look.by, len(rows), look.rows)
			}
		}
	})
}

func collect(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return lines
}

// The ids of both makers lie between those of the moments around them.
func TestLookupsKnowTheTimeOfAnID(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		p.withLookups(t)
		p.committed(t, corpus.OrderCreated(`{}`))
		p.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
		const between = `SELECT count(*) FROM {schema}.outbox_events WHERE id >= {schema}.outbox_id_at(now() - $1::interval)
			AND id < {schema}.outbox_id_at(now() + $2::interval)`
		for _, window := range []struct {
			before, after string
			want          int
		}{{"1 hour", "1 minute", 2}, {"2 hours", "-1 hour", 0}, {"-1 minute", "1 hour", 0}} {
			if got := p.Count(t, between, window.before, window.after); got != window.want {
				t.Errorf("%s ago to in %s: %d events, want %d", window.before, window.after, got, window.want)
			}
		}
	})
}

// What is optional takes nothing away from what a publish saves: no index has to know of it.
func TestLookupsLeavePublishingHOT(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		p.withLookups(t)
		p.fillLookups(t)
		if updated, hot := p.settle(t, 1, 10_000); hot != updated || updated != 10_000 {
			t.Errorf("%d of %d updates are HOT", hot, updated)
		}
		// The check sees what the file warns of. Other events: these have used up the room on their pages.
		p.Exec(t, "CREATE INDEX ON {schema}.outbox_events (published_at)")
		if updated, hot := p.settle(t, 10_001, 20_000); hot != 0 || updated != 10_000 {
			t.Errorf("%d of %d updates are HOT with an index on published_at", hot, updated)
		}
	})
}

// settle publishes the events with these numbers anew, and answers how many of the updates were HOT. It has a session
// of its own: the server counts what a session has not reported yet.
func (p env) settle(t *testing.T, first, last int) (updated, hot int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		p.SQL("UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE seq BETWEEN $1 AND $2"),
		first, last); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), p.SQL(`
		SELECT pg_stat_get_xact_tuples_updated(c), pg_stat_get_xact_tuples_hot_updated(c)
		  FROM (SELECT '{schema}.outbox_events'::regclass AS c) r`)).Scan(&updated, &hot); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, tx)
	return updated, hot
}
