package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// withOrders adds a table that is older than the outbox.
func (e *env) withOrders(t *testing.T, count int) {
	t.Helper()
	e.exec(t, "CREATE TABLE {schema}.orders (id bigint PRIMARY KEY, total numeric)")
	e.exec(t, "INSERT INTO {schema}.orders SELECT i, i * 1.5 FROM generate_series(1, $1::integer) i", count)
}

// each tells how many orders have an event, and how many events there are.
func (e *env) each(t *testing.T) string {
	t.Helper()
	return e.text(t, `SELECT count(DISTINCT o.id) || ' orders, ' || count(*) || ' events' FROM {schema}.outbox_events e
		JOIN {schema}.orders o ON o.id::text = e.aggregate_id`)
}

// TestEmitFromQuery: it counts unless it is told to do it, and emits each row once.
func TestEmitFromQuery(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.withOrders(t, 12)
		query := e.sql("SELECT id AS key, json_build_object('total', total) AS data FROM {schema}.orders")
		file := filepath.Join(t.TempDir(), "orders.sql")
		if err := os.WriteFile(file, []byte(query+";\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		app := e.as(t, "app")
		e.exec(t, "SELECT {schema}.outbox_grant('producer', $1)", app.role(t))
		const none, all = "0 orders, 0 events", "12 orders, 12 events"
		of := []string{"order_created", "--aggregate", "order", "--from-query"}
		for _, call := range []struct {
			env  *env
			args []string
			code int
			says string
			each string
		}{
			{e, []string{"order_created", "--aggregate", "order/1", "--yes"}, 2, "--yes is for --from-query", none},
			{e, append(of, query, "--dedupe-key", "k"), 2, "give the query a column dedupe_key", none},
			{e, []string{"--from-query", query}, 2, "the query has no column", none},
			{e, []string{"order_created", "--aggregate", "order/1", "--from-query", query}, 2, "type alone", none},
			{e, append(of, "SELECT 1 AS key FROM nowhere"), 1, "try it in psql", none},
			{e, append(of, "@"+file+".none"), 2, "no such file", none},
			{app, append(of, query), 4, "permission denied for table orders", none},
			{e, append(of, query), 0, "of 12 rows, would emit an event for each that has none yet", none},
			{e, append(of, query), 0, `order_created order/3, key backfill/order/3: {"total" : 4.5}`, none},
			{e, append(of, query, "--after", "9", "-o", "json"), 0, `"rows": 3`, none},
			{e, append(of, query, "--after", "9", "--yes"), 0, "emitted 3 events", "3 orders, 3 events"},
			{e, append(of, "@"+file, "--yes", "--rate", "0"), 0, "emitted 9 events, 3 were there already", all},
			{e, append(of, query, "--yes"), 0, "emitted 0 events, 12 were there already", all},
		} {
			code, stdout, stderr := call.env.call(t, append([]string{"emit"}, call.args...)...)
			if code != call.code || !strings.Contains(stdout+stderr, call.says) || e.each(t) != call.each {
				t.Errorf("%q: ended with %d, %s\n%s%s", call.args, code, e.each(t), stdout, stderr)
			}
		}
		e.exec(t, "GRANT SELECT ON {schema}.orders TO "+app.role(t))
		code, stdout, stderr := app.call(t, append([]string{"emit", "-o", "json", "--yes"}, append(of, query)...)...)
		var report backfillReport
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitDone || report.Done == nil ||
			report.Done.There != 12 || report.Done.Key != "12" || len(report.Sample) != 3 {
			t.Errorf("as a producer: ended with %d, %v\n%s%s", code, err, stdout, stderr)
		}
	})
}

// TestEmitFromQueryGoesOn: interrupted in the middle, and run again: every row has exactly one event.
func TestEmitFromQueryGoesOn(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.withOrders(t, 300)
		args := []string{
			"emit", "order_created", "--aggregate", "order", "--batch", "10", "--yes", "--schema", e.schema, "--from-query",
			e.sql("SELECT id AS key FROM {schema}.orders"),
		}
		environment := map[string]string{"DATABASE_URL": e.url}
		getenv := func(name string) string { return environment[name] }
		ctx, interrupt := context.WithCancel(within(t))
		defer interrupt()
		var out, said bytes.Buffer
		code := make(chan int, 1)
		go func() { code <- execute(ctx, append(args, "--rate", "10"), &out, &said, getenv) }()
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for e.text(t, "SELECT (count(*) >= 20)::text FROM {schema}.outbox_events") != "true" {
			select {
			case <-look.C:
			case ended := <-code:
				t.Fatalf("ended with %d\n%s%s", ended, out.String(), said.String())
			}
		}
		interrupt()
		if got := <-code; got != exitInterrupt || !strings.Contains(said.String(), "the same command goes on") ||
			!strings.Contains(said.String(), "--after ") {
			t.Errorf("interrupted: ended with %d\n%s%s", got, out.String(), said.String())
		}
		if strings.Contains(said.String(), context.Canceled.Error()) {
			t.Errorf("Go's own words: %s", said.String())
		}
		out.Reset()
		if got := execute(within(t), append(args, "--rate", "0"), &out, &said, getenv); got != exitDone ||
			!strings.Contains(out.String(), "were there already") {
			t.Errorf("again: ended with %d\n%s%s", got, out.String(), said.String())
		}
		if got := e.each(t); got != "300 orders, 300 events" {
			t.Error(got)
		}
	})
}
