package backfill_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/operator/backfill"
)

// in is the same outbox, seen by sessions with other settings.
func (e *env) in(settings map[string]string) *env {
	e.t.Helper()
	config := e.pool.Config()
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	pool, err := pgxpool.NewWithConfig(e.t.Context(), config)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(pool.Close)
	return &env{t: e.t, pool: pool, schema: e.schema}
}

// ofIndia has dates whose texts PostgreSQL reads as others: IST is a zone of three countries.
var ofIndia = map[string]string{
	"timezone": "Asia/Kolkata", "datestyle": "SQL, MDY", "intervalstyle": "sql_standard", "extra_float_digits": "-15",
	"bytea_output": "escape",
}

// TestKeysInSessionsOfEveryKind: every row has its event, whatever the session makes of dates and numbers, and one in a
// session with other settings makes no second event of it.
func TestKeysInSessionsOfEveryKind(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(`INSERT INTO {schema}.orders SELECT i, 'c', i, '2020-01-01 00:00Z'::timestamptz + i * interval '10 minutes'
			FROM generate_series(1, 100) i`)
		other := e.in(ofIndia)
		for name, key := range map[string]string{
			"time": "placed", "float": "1 + id / 1e9::float8", "bytes": "int8send(id)", "interval": "id * interval '90 minutes'",
			"money": "id::money",
		} {
			query := backfill.Config{
				EventType: "of_" + name, AggregateType: "order", Batch: 10,
				Query: `SELECT ` + key + ` AS key, id AS aggregate_id FROM {schema}.orders`,
			}
			b, plan := other.backfill(query)
			if done, err := b.Run(t.Context(), plan, nobody); err != nil || done.Rows != 100 || done.Emitted != 100 {
				t.Errorf("%s: %+v, %v", name, done, err)
			}
			b, plan = e.backfill(query)
			if done, err := b.Run(t.Context(), plan, nobody); err != nil || done.There != 100 || done.Emitted != 0 {
				t.Errorf("%s, again, in another session: %+v, %v", name, done, err)
			}
		}
		b, plan := other.backfill(backfill.Config{Query: "SELECT id AS key, placed AS occurred_at FROM {schema}.orders"})
		if done, err := b.Run(t.Context(), plan, nobody); err != nil || done.Emitted != 100 {
			t.Errorf("%+v, %v", done, err)
		}
		if got := e.one(`SELECT min(payload_json ->> 'occurredAt') FROM {schema}.outbox_events
			WHERE event_type = 'order_created'`); got !=
			"2020-01-01T00:10:00.000000Z" {
			t.Errorf("the first is of %s", got)
		}
	})
}

// TestKeysThatComeTwiceMeanwhile: rows may come after the plan has counted. On both sides of the end of a batch, as
// elsewhere, the second would have no event.
func TestKeysThatComeTwiceMeanwhile(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("CREATE TABLE {schema}.keys (k integer)")
		e.exec("INSERT INTO {schema}.keys SELECT generate_series(1, 8)")
		for _, twice := range []int{5, 4} {
			b, plan := e.backfill(backfill.Config{Batch: 4, Query: "SELECT k AS key FROM {schema}.keys"})
			e.exec("INSERT INTO {schema}.keys VALUES ($1)", twice)
			_, err := b.Run(t.Context(), plan, nobody)
			input := (*backfill.InputError)(nil)
			if !errors.As(err, &input) || !strings.Contains(err.Error(), "is there twice") {
				t.Errorf("%d: %v", twice, err)
			}
			e.exec("DELETE FROM {schema}.keys WHERE k = $1", twice)
			e.exec("INSERT INTO {schema}.keys VALUES ($1)", twice)
		}
	})
}
