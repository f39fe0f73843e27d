package backfill_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/relay/operator/backfill"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// An env is an outbox beside a table of orders that is older.
type env struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
}

func onEachServer(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	serverstest.OnEach(t, func(t *testing.T, address string) {
		e := &env{t: t}
		e.pool, e.schema = relaytest.Database(t, address)
		e.exec("CREATE TABLE {schema}.orders (id bigint PRIMARY KEY, customer text, total numeric, placed timestamptz)")
		test(t, e)
	})
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(statement string, args ...any) {
	e.t.Helper()
	if _, err := e.pool.Exec(e.t.Context(), e.sql(statement), args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

func (e *env) one(query string, args ...any) (answer string) {
	e.t.Helper()
	if err := e.pool.QueryRow(e.t.Context(), e.sql(query), args...).Scan(&answer); err != nil {
		e.t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// orders are so many rows; their numbers have holes.
func (e *env) orders(count int) {
	e.t.Helper()
	e.exec(`INSERT INTO {schema}.orders
		SELECT i * 3, 'c' || i % 7, i * 1.25, '2020-01-01'::timestamptz + i * interval '1 day'
		  FROM generate_series(1, $1::integer) i`, count)
}

const ofOrders = `SELECT id AS key, 'c' || customer AS tenant_id, placed AS occurred_at,
	json_build_object('total', total) AS data, '{"source":"orders"}' AS headers FROM {schema}.orders; `

func (e *env) backfill(config backfill.Config) (*backfill.Backfill, backfill.Plan) {
	e.t.Helper()
	config.Schema, config.Query = e.schema, e.sql(config.Query)
	if config.EventType == "" {
		config.EventType, config.AggregateType = "order_created", "order"
	}
	b, err := backfill.New(e.pool, config)
	if err != nil {
		e.t.Fatal(err)
	}
	plan, err := b.Plan(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return b, plan
}

func nobody(backfill.Progress) {}

// each tells how many orders have an event, and how many events there are.
func (e *env) each() string {
	e.t.Helper()
	return e.one(`SELECT count(DISTINCT o.id) || ' orders, ' || count(*) || ' events' FROM {schema}.outbox_events e
		JOIN {schema}.orders o ON o.id::text = e.aggregate_id`)
}

// TestABackfill: an event for every row, with what columns and configuration say, in the order of the keys.
func TestABackfill(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(25)
		b, plan := e.backfill(backfill.Config{
			Query: ofOrders, Namespace: "shop", Headers: map[string]string{"source": "all", "kind": "backfill"}, Batch: 10,
		})
		if plan.Rows != 25 || len(plan.Sample) != 3 || plan.Sample[1].Key != "6" ||
			plan.Sample[1].DedupeKey != "cc2/backfill/order/6" || string(plan.Sample[1].Data) != `{"total" : 2.50}` {
			t.Errorf("the plan is %+v", plan)
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_events"); got != "0" {
			t.Errorf("the plan has written %s events", got)
		}
		var told []string
		done, err := b.Run(t.Context(), plan, func(p backfill.Progress) { told = append(told, fmt.Sprint(p)) })
		if err != nil || strings.Join(told, " ") != "{10 10 0 30} {20 20 0 60} {25 25 0 75}" {
			t.Errorf("it told %v, %v", told, err)
		}
		if done.Rows != 25 || done.Emitted != 25 || done.There != 0 || done.Key != "75" {
			t.Errorf("it came to %+v", done)
		}
		if got := e.each(); got != "25 orders, 25 events" {
			t.Error(got)
		}
		if got := e.one(`SELECT concat_ws('|', namespace, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
			headers ->> 'source', headers ->> 'kind', payload_json ->> 'data', payload_json ->> 'occurredAt')
			FROM {schema}.outbox_events ORDER BY seq OFFSET 1 LIMIT 1`); got !=
			"shop|order_created|order|6|cc2|cc2/backfill/order/6|"+
				`orders|backfill|{"total" : 2.50}|2020-01-03T00:00:00.000000Z` {
			t.Errorf("the second event is %s", got)
		}
		if got := e.one(`SELECT bool_and(n = id)::text FROM (SELECT row_number() OVER (ORDER BY seq) * 3 AS n,
			aggregate_id::bigint AS id FROM {schema}.outbox_events) e`); got != "true" {
			t.Error("the events are not in the order of the keys")
		}
	})
}

// TestABackfillGoesOn: cut off in the middle of the work by its context, by a server that ends the session while a
// batch is written, and run again each time: every row has exactly one event. What is there costs no write.
func TestABackfillGoesOn(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(100)
		config := backfill.Config{Query: ofOrders, Batch: 10}
		b, plan := e.backfill(config)
		ctx, cut := context.WithCancel(t.Context())
		done, err := b.Run(ctx, plan, func(p backfill.Progress) {
			if p.Rows == 30 {
				cut()
			}
		})
		if !errors.Is(err, context.Canceled) || done.Emitted != 30 || done.Key != "90" {
			t.Fatalf("cut off: %+v, %v", done, err)
		}
		// The session ends behind the insert of a row in the middle of a batch.
		e.exec(`CREATE FUNCTION {schema}.kill() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
		e.exec(`CREATE TRIGGER kill AFTER INSERT ON {schema}.outbox_events FOR EACH ROW WHEN (NEW.aggregate_id = '165')
			EXECUTE FUNCTION {schema}.kill()`)
		done, err = b.Run(t.Context(), plan, nobody)
		if err == nil || done.Emitted != 20 || done.There != 30 || done.Key != "150" {
			t.Fatalf("killed: %+v, %v", done, err)
		}
		if got := e.each(); got != "50 orders, 50 events" {
			t.Error(got)
		}
		e.exec("DROP TRIGGER kill ON {schema}.outbox_events")
		// A row that changed since makes no second event.
		e.exec("UPDATE {schema}.orders SET total = 0")
		config.After = "120"
		after, rest := e.backfill(config)
		if done, err = after.Run(t.Context(), rest, nobody); err != nil || rest.Rows != 60 || done.Emitted != 50 ||
			done.There != 10 {
			t.Errorf("behind 120: %+v of %d, %v", done, rest.Rows, err)
		}
		done, err = b.Run(t.Context(), plan, nobody)
		if err != nil || done.Emitted != 0 || done.There != 100 {
			t.Errorf("again: %+v, %v", done, err)
		}
		if got := e.each(); got != "100 orders, 100 events" {
			t.Error(got)
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_dedupe WHERE repeated"); got != "0" {
			t.Errorf("%s keys were written to by runs that had nothing to do there", got)
		}
	})
}

// TestTwoBackfillsAtOnce: whoever comes second meets the keys of the first.
func TestTwoBackfillsAtOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(200)
		type end struct {
			done backfill.Progress
			err  error
		}
		ends := make(chan end, 2)
		for range 2 {
			b, plan := e.backfill(backfill.Config{Query: ofOrders, Batch: 7})
			go func() {
				done, err := b.Run(t.Context(), plan, nobody)
				ends <- end{done, err}
			}()
		}
		emitted := int64(0)
		for range 2 {
			one := <-ends
			if one.err != nil || one.done.Rows != 200 {
				t.Errorf("%+v, %v", one.done, one.err)
			}
			emitted += one.done.Emitted
		}
		if got := e.each(); got != "200 orders, 200 events" || emitted != 200 {
			t.Errorf("%s, and %d were counted", got, emitted)
		}
	})
}

// TestABackfillIsPaced: so many per second at most, and what is there already is not waited for.
func TestABackfillIsPaced(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(61)
		b, plan := e.backfill(backfill.Config{Query: ofOrders, Rate: 20})
		begun := time.Now()
		if done, err := b.Run(t.Context(), plan, nobody); err != nil || done.Emitted != 61 {
			t.Fatalf("%+v, %v", done, err)
		}
		if took := time.Since(begun); took < 3*time.Second { // behind the third batch of 20
			t.Errorf("61 events at 20 per second took %s", took)
		}
		slow, plan := e.backfill(backfill.Config{Query: ofOrders, Rate: 0.001})
		if done, err := slow.Run(t.Context(), plan, nobody); err != nil || done.There != 61 {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// TestNoCreditForWhatIsPassedOver: time in which rows are read, and found to have their events, lets no more go later.
func TestNoCreditForWhatIsPassedOver(t *testing.T) {
	t.Parallel()
	next := backfill.Pace(100)
	begun := time.Now()
	at := func(second float64) time.Time { return begun.Add(time.Duration(second * float64(time.Second))) }
	for i, c := range []struct {
		begins  float64
		emitted int
		next    float64
	}{
		{0, 100, 1},
		{1, 0, 1},
		{60, 100, 61}, // a minute of rows that had theirs
		{60.5, 50, 61.5},
		{61.5, 0, 61.5},
		{61.7, 10, 61.8},
	} {
		if got := next(at(c.begins), c.emitted); got.Sub(at(c.next)).Abs() > time.Millisecond {
			t.Errorf("%d: the next begins after %s, want %vs", i, got.Sub(begun), c.next)
		}
	}
	if got := backfill.Pace(0)(begun, 100); got.After(begun) {
		t.Errorf("without a rate it waits until %s", got)
	}
}

// TestQueriesThatMakeNoEvents: what is wrong is told before anything is written, and nothing is written by a query.
func TestQueriesThatMakeNoEvents(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(5)
		for query, want := range map[string]string{
			"":                                    "the query is empty",
			"SELECT 1 AS id":                      `has a column "id", which is no part of an event`,
			"SELECT 'x' AS data":                  "the query has no column key",
			"SELECT NULL::int AS key":             "1 rows of the query have no key",
			"SELECT 1 AS key UNION ALL SELECT 1":  "2 rows and 1 keys",
			"SELECT id AS key FROM {schema}.none": "does not exist",
			"SELECT id AS key, 'no json' AS data FROM {schema}.orders":  `the row with the key "3": `,
			"SELECT id AS key, '[]' AS headers FROM {schema}.orders":    "a JSON object of texts",
			"SELECT id AS key, '' AS aggregate_id FROM {schema}.orders": "aggregate_id: missing",
			"SELECT (id, total) AS key FROM {schema}.orders":            "the key is a row without a type",
			"SELECT ARRAY[(id, total)] AS key FROM {schema}.orders":     "the key is a row without a type",
			"SELECT id AS key, 'infinity'::timestamptz AS occurred_at FROM {schema}.orders": `the row with the key "3": ` +
				`occurred_at: "infinity" is no time of the years 1 to 9999`,
			"SELECT nextval('{schema}.outbox_events_seq_seq') AS key":                 "read-only transaction",
			"WITH gone AS (DELETE FROM {schema}.orders RETURNING id) SELECT 1 AS key": "the query: ",
			"SELECT 1 AS key) q; DELETE FROM {schema}.orders; SELECT FROM (SELECT 1":  "multiple commands",
		} {
			b, err := backfill.New(e.pool, backfill.Config{
				Schema: e.schema, Query: e.sql(query), EventType: "order_created", AggregateType: "order",
			})
			if err == nil {
				_, err = b.Plan(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nwant %s", query, err, want)
			}
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.orders"); got != "5" {
			t.Errorf("%s orders are left", got)
		}
		for want, config := range map[string]backfill.Config{
			"the batch is -1":                    {Query: "SELECT 1 AS key", Batch: -1},
			"the rate is -1":                     {Query: "SELECT 1 AS key", Rate: -1},
			"the query has no column event_type": {Query: "SELECT 1 AS key", AggregateType: "order"},
		} {
			config.Schema = e.schema
			b, err := backfill.New(e.pool, config)
			if err == nil {
				_, err = b.Plan(t.Context())
			}
			if input := (*backfill.InputError)(nil); !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	})
}

// TestKeysOfManyTypes: texts, uuids and times are keys as well, and a column may give every part of an event.
func TestKeysOfManyTypes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.orders(20)
		for name, key := range map[string]string{
			"text": "'order ' || id", "uuid": "md5(id::text)::uuid", "time": "placed", "number": "total",
			"characters": "('order ' || id)::char(20)", "character": "('order ' || id)::bpchar", "bits": "id::integer::bit(8)",
			"bit": "id::integer::bit(8)::\"bit\"", "name": "('order ' || id)::name", "short": "('order ' || id)::varchar(9)",
		} {
			b, plan := e.backfill(backfill.Config{Batch: 6, Query: `SELECT ` + key + ` AS key, id AS aggregate_id,
				'order' AS aggregate_type, 'of_` + name + `' AS event_type, '` + name + `/' || id AS dedupe_key
				FROM {schema}.orders`})
			if done, err := b.Run(t.Context(), plan, nobody); err != nil || done.Emitted != 20 {
				t.Errorf("%s: %+v, %v", name, done, err)
			}
			if got := e.one(`SELECT count(DISTINCT aggregate_id) || ' ' || min(dedupe_key) FROM {schema}.outbox_events
				WHERE event_type = $1`, "of_"+name); got != "20 "+name+"/12" {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

// TestTheEmptyTextIsAKey: the first of all, and a batch that ends with it is not the beginning.
func TestTheEmptyTextIsAKey(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		b, plan := e.backfill(backfill.Config{
			Batch: 1, Query: "SELECT k AS key, 'is ' || k AS aggregate_id FROM unnest(ARRAY['', 'a', 'b']) k",
		})
		ctx, cut := context.WithCancel(t.Context())
		defer cut()
		done, err := b.Run(ctx, plan, func(p backfill.Progress) {
			if p.Rows > 3 {
				cut()
			}
		})
		if err != nil || plan.Rows != 3 || done.Emitted != 3 || done.Rows != 3 {
			t.Errorf("%+v of %d, %v", done, plan.Rows, err)
		}
	})
}

// TestKeysThatTheirTextsDoNotTellApart: the rows behind one cannot be asked for: an error, no loop and no loss.
func TestKeysThatTheirTextsDoNotTellApart(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("CREATE TYPE {schema}.pair AS (a integer, b integer)")
		e.exec(`CREATE FUNCTION {schema}.half(p {schema}.pair) RETURNS text LANGUAGE sql IMMUTABLE AS
			$$ SELECT '(' || p.a || ',)' $$`)
		e.exec("CREATE CAST ({schema}.pair AS text) WITH FUNCTION {schema}.half({schema}.pair)")
		b, err := backfill.New(e.pool, backfill.Config{
			Schema: e.schema, EventType: "order_created", AggregateType: "order",
			Query: e.sql("SELECT (i / 2, i)::{schema}.pair AS key FROM generate_series(1, 10) i"),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Plan(t.Context())
		if input := (*backfill.InputError)(nil); !errors.As(err, &input) ||
			!strings.Contains(err.Error(), `the key "(0,)" is another one, or not above the one before`) {
			t.Errorf("%v", err)
		}
	})
}
