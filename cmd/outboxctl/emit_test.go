package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TestEmitWritesOneEvent, from wherever its data comes, with everything that the flags say.
func TestEmitWritesOneEvent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "order.json")
	if err := os.WriteFile(file, []byte(`{"total": 12.50}`), 0o600); err != nil {
		t.Fatal(err)
	}
	onEachServer(t, func(t *testing.T, e *env) {
		for name, c := range map[string]struct{ input, data, want string }{
			"given": {"", `{"total":1}`, `{"total":1}`},
			"file":  {"", "@" + file, `{"total": 12.50}`},
			"input": {`{"total":3}`, "-", `{"total":3}`},
		} {
			code, stdout, stderr := e.callWith(t, c.input, "emit", "order_created", "--aggregate", "order/1/2", "--data", c.data,
				"--tenant", "acme", "--dedupe-key", "acme/"+name, "--namespace", "shop", "--header", "source=test",
				"--header", "a=b=c")
			id, became, _ := strings.Cut(strings.TrimSpace(stdout), "  ")
			if _, err := outbox.ParseID(id); err != nil || code != exitDone || became != "created" {
				t.Fatalf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
			}
			if !strings.Contains(stderr, "no relay that is alive knows the type order_created") {
				t.Errorf("%s: %s", name, stderr)
			}
			got := e.text(t, `SELECT concat_ws('|', event_type, namespace, aggregate_type, aggregate_id, tenant_id, dedupe_key,
				headers ->> 'source', headers ->> 'a', payload_json ->> 'data')
				FROM {schema}.outbox_events WHERE id = $1::text::uuid`, id)
			if want := "order_created|shop|order|1/2|acme|acme/" + name + "|test|b=c|" + c.want; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// TestEmitSaysWhatItKnows: a key that was used, and a type that a relay knows.
func TestEmitSaysWhatItKnows(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, `WITH r AS (INSERT INTO {schema}.outbox_relays (id, token, name) VALUES
			(gen_random_uuid(), gen_random_uuid(), 'here') RETURNING id),
			b AS (INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors, swept, recovered, need_lanes,
			need_types) SELECT id, 1, now() + interval '1 hour', '{}', '{}', '{}', '{}', '{}', '{}' FROM r)
			INSERT INTO {schema}.outbox_known (relay, event_type, topic) SELECT id, 'order_created', 'orders' FROM r`)
		emit := func(data string) (int, string, string) {
			return e.call(t, "emit", "order_created", "--aggregate", "order/1", "--data", data, "--dedupe-key", "1",
				"-o", "json")
		}
		var first, second emitReport
		for report, data := range map[*emitReport]string{&first: `{"a":1}`} {
			code, stdout, stderr := emit(data)
			if err := json.Unmarshal([]byte(stdout), report); err != nil || code != exitDone || stderr != "" {
				t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
			}
		}
		code, stdout, _ := emit(`{"a":1}`)
		if err := json.Unmarshal([]byte(stdout), &second); err != nil || code != exitDone || second.ID != first.ID ||
			!first.Created || second.Created || !*first.KnownToRelay {
			t.Errorf("exit code %d\n%s\n%+v", code, stdout, first)
		}
		code, _, stderr := emit(`{"a":2}`)
		if code != exitFailed || !strings.Contains(stderr, `"code":"dedupe_mismatch"`) ||
			!strings.Contains(stderr, "by event "+first.ID.String()) || !strings.Contains(stderr, "a key of its own") {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		e.exec(t, "UPDATE {schema}.outbox_beats SET until = now() - interval '1 second'")
		if _, _, stderr := e.call(t, "emit", "order_created", "--aggregate", "order/1"); !strings.Contains(stderr,
			"no relay that is alive knows the type") {
			t.Errorf("the relay is dead: %s", stderr)
		}
	})
}

// TestEmitAsksBeforeItsEventIsThere: of a type that it does not know, the relay of 'outboxctl dev' leaves and comes
// again as soon as it sees the event. Here it has left when the emit commits, which is the earliest that can be.
func TestEmitAsksBeforeItsEventIsThere(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, `WITH r AS (INSERT INTO {schema}.outbox_relays (id, token, name) VALUES
			(gen_random_uuid(), gen_random_uuid(), 'outboxctl dev') RETURNING id)
			INSERT INTO {schema}.outbox_beats (relay, number, until) SELECT id, 1, now() + interval '1 hour' FROM r`)
		e.exec(t, `CREATE FUNCTION {schema}.leave() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN UPDATE {schema}.outbox_relays SET ended_at = clock_timestamp(); RETURN NULL; END $$`)
		e.exec(t, "CREATE TRIGGER leave AFTER INSERT ON {schema}.outbox_events EXECUTE FUNCTION {schema}.leave()")
		if code, _, stderr := e.call(t, "emit", "never_seen", "--aggregate", "thing/7"); code != exitDone || stderr != "" {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		if _, _, stderr := e.call(t, "emit", "never_seen", "--aggregate", "thing/7"); stderr == "" {
			t.Error("the relay has left, and nothing is said")
		}
	})
}

// TestEmitSaysWhatToDo: without tables, and without the right.
func TestEmitSaysWhatToDo(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		emit := []string{"emit", "order_created", "--aggregate", "order/1", "--dedupe-key", "1"}
		code, _, stderr := (&env{url: e.url, pool: e.pool, schema: e.schema + "_none"}).call(t, emit...)
		if code != exitFailed || strings.Count(stderr, "run 'outboxctl migrate up --schema "+e.schema+"_none'") != 1 {
			t.Errorf("no tables: exit code %d\n%s", code, stderr)
		}
		app := e.as(t, "app")
		e.exec(t, "GRANT USAGE ON SCHEMA {schema} TO "+app.role(t))
		code, _, stderr = app.call(t, emit[:4]...)
		if code != exitNotLetIn || !strings.Contains(stderr, "'outboxctl grant producer ROLE'") {
			t.Errorf("no right: exit code %d\n%s", code, stderr)
		}
		e.exec(t, "SELECT {schema}.outbox_grant('producer', $1)", app.role(t))
		// It may not ask for relays, and so nothing is said about them.
		code, stdout, stderr := app.call(t, append(emit, "-o", "json")...)
		if code != exitDone || stderr != "" || strings.Contains(stdout, "known") {
			t.Errorf("a producer: exit code %d\n%s%s", code, stdout, stderr)
		}
	})
}

// TestEmitLooksFirst: what is wrong with an event is told before a database is asked.
func TestEmitLooksFirst(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"emit takes one event type":            {"emit"},
		"as TYPE/ID":                           {"emit", "a", "--aggregate", "order"},
		"--data is no JSON object":             {"emit", "a", "--aggregate", "order/1", "--data", "[1]"},
		"at byte 9 in line 2":                  {"emit", "a", "--aggregate", "order/1", "--data", "{\n \"a\": s3cr3t}"},
		"--data: open /no/file":                {"emit", "a", "--aggregate", "order/1", "--data", "@/no/file"},
		`--header "x": write it as name=value`: {"emit", "a", "--aggregate", "order/1", "--header", "x"},
		"dedupe_key":                           {"emit", "a", "--aggregate", "order/1", "--tenant", "b", "--dedupe-key", "c"},
		"headers":                              {"emit", "a", "--aggregate", "order/1", "--header", "event_id=1"},
		"Type: ":                               {"emit", "a b", "--aggregate", "order/1"},
	} {
		code, stdout, stderr := call(t, nil, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%q: exit code %d, want %q\n%s%s", args, code, want, stdout, stderr)
		}
	}
}
