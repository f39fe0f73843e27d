package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a file of a new folder.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const shopRegistry = `
contracts:
  - type: order_created
    version: 2
    aggregate: order
    topic: orders
    schema: {type: object, required: [total], properties: {total: {type: integer}}}
  - {type: order_seen, aggregate: order}
`

// TestRegistryWithoutADatabase: what is made of a file of contracts, alone or by the publisher's configuration.
func TestRegistryWithoutADatabase(t *testing.T) {
	t.Parallel()
	registry := written(t, "registry.yaml", shopRegistry)
	// The rest of the configuration is not looked at: it lacks a database and a broker.
	config := written(t, "publisher.yaml", fmt.Sprintf(
		"registry: {file: %s}\ntopic: {default: seen}\nmessage: {formats: {orders: cloudevents}, source: /shop}\n", registry))
	for line, want := range map[string][]string{
		"export": {`"type": "order_created"`, `"topic": "seen"`, `"on_dead": "skip"`, `"required": [`},
		"sql": {
			`"public".outbox_emit('order_created', 'order', 'order-1',`, `'{"total":1}'::json, version => 2);`,
		},
		"sql order_seen":         {`-- It has no schema: any object will do.`, `'{}'::json`},
		"sql --schema my.outbox": {`FROM "my.outbox".outbox_emit(`},
		"asyncapi --title Shop":  {`"asyncapi": "3.0.0"`, `"title": "Shop"`, `"ce-source"`, `"const": "/shop"`},
		"schema order_created":   {`"total": {`},
		"schema order_seen":      {`"type": "object"`},
		"list --offline": {
			"order_created  registry  orders  order            2  yes", "order_seen     registry  seen",
		},
		"list -o json": {`"schema": true`, `"database": false`},
	} {
		code, stdout, stderr := call(t, nil, append(strings.Fields("registry "+line), "--config", config)...)
		for _, part := range want {
			if code != exitDone || !strings.Contains(stdout, part) {
				t.Errorf("%s: exit code %d, it lacks %q:\n%s%s", line, code, part, stdout, stderr)
			}
		}
	}
	if _, stdout, _ := call(t, nil, "registry", "sql", "order_seen", "--config", config); strings.Contains(stdout,
		"order_created") {
		t.Errorf("one type was asked for:\n%s", stdout)
	}
	for line, want := range map[string]struct {
		code int
		said string
	}{
		"registry export":                                     {exitUsage, "no registry is given"},
		"registry list":                                       {exitUsage, "neither a registry nor a database is given"},
		"registry export --registry " + registry:              {exitUsage, `"order_seen": Topic: missing`},
		"registry export --registry a --config b":             {exitUsage, "name two registries"},
		"registry export --config " + registry:                {exitUsage, "no registry is given"},
		"registry schema order_lost --config " + config:       {exitNotFound, `the registry has no type "order_lost"`},
		"registry sql order_lost --config " + config:          {exitNotFound, `the registry has no type "order_lost"`},
		"registry schema --config " + config:                  {exitUsage, "name one event type"},
		"registry diff " + registry:                           {exitUsage, "name two files"},
		"registry diff a b --for me":                          {exitUsage, `--for "me" is none of`},
		"registry diff nowhere.json " + registry:              {exitUsage, "nowhere.json: no such file"},
		"registry check --default-topic x":                    {exitUsage, "no registry is given"},
		"registry":                                            {exitUsage, "is missing"},
		"registry check --default-topic x --config " + config: {exitUsage, "no database is given"},
	} {
		code, stdout, stderr := call(t, nil, strings.Fields(line)...)
		if code != want.code || !strings.Contains(stderr, want.said) || stdout != "" {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", line, code, want.code, want.said, stdout, stderr)
		}
	}
}

// TestRegistryExportIsReadBack: what a publisher would read as something else is not printed.
func TestRegistryExportIsReadBack(t *testing.T) {
	t.Parallel()
	schema := written(t, "schema.json", `{"properties": {"`+strings.Repeat("k", 1500)+`": {}}}`)
	registry := filepath.Join(filepath.Dir(schema), "registry.yaml")
	text := "contracts:\n  - {type: a, aggregate: b, topic: c, schema: schema.json}\n"
	if err := os.WriteFile(registry, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, nil, "registry", "export", "--registry", registry)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "as one document it could not be read") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

// TestRegistryDiff: an export is compared with what it came from, and with what breaks somebody.
func TestRegistryDiff(t *testing.T) {
	t.Parallel()
	registry := written(t, "registry.yaml", shopRegistry)
	_, export, _ := call(t, nil, "registry", "export", "--registry", registry, "--default-topic", "seen")
	old := written(t, "old.json", export)
	code, stdout, stderr := call(t, nil, "registry", "diff", old, registry, "--default-topic", "seen")
	if code != exitDone || stdout != "nothing changes\n" {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	changed := written(t, "new.json", strings.Replace(export, `"topic": "orders"`, `"topic": "sales"`, 1))
	for side, want := range map[string]int{"both": exitFailed, "consumers": exitFailed, "producers": exitDone} {
		code, stdout, stderr := call(t, nil, "registry", "diff", old, changed, "--for", side)
		if code != want || !strings.Contains(stdout, "consumers  order_created  topic_changed  from orders to sales") ||
			(want == exitFailed) != strings.Contains(stderr, "1 change breaks somebody") {
			t.Errorf("%s: exit code %d:\n%s%s", side, code, stdout, stderr)
		}
	}
	code, stdout, stderr = call(t, nil, "registry", "diff", old, changed, "-o", "json")
	var changes []map[string]string
	if err := json.Unmarshal([]byte(stdout), &changes); err != nil || code != exitFailed || len(changes) != 1 ||
		changes[0]["kind"] != "topic_changed" || changes[0]["breaks"] != "consumers" ||
		!strings.Contains(stderr, `"code":"breaking_changes"`) {
		t.Errorf("%v: exit code %d:\n%s%s", err, code, stdout, stderr)
	}
}

// TestRegistryCheck: by exit code, for a role that may look and for one that may read payloads.
func TestRegistryCheck(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		registry := written(t, "registry.yaml", shopRegistry)
		viewer := e.as(t, "viewer")
		e.exec(t, "SELECT {schema}.outbox_grant('viewer', $1)", viewer.role(t))
		check := func(e *env, args ...string) (code int, stdout, stderr string) {
			t.Helper()
			return e.call(t, append([]string{"registry", "check", "--registry", registry, "--default-topic", "seen"},
				args...)...)
		}
		if code, stdout, stderr := check(e); code != exitDone || stdout != "no event waits\n" {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		e.exec(t, `SELECT {schema}.outbox_emit('order_created', 'order', '1', '{"total": 1}', version => 2)`)
		if code, stdout, stderr := check(e); code != exitDone || stdout != "all 1 event that waits can be published\n" ||
			stderr != "" {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		e.exec(t, `SELECT {schema}.outbox_emit('order_created', 'order', '1', '{"total": "much"}', version => 2)`)
		code, stdout, stderr := check(e)
		if code != exitFailed || !strings.Contains(stdout, "data: /total: type: got string, want integer") ||
			!strings.Contains(stderr, "1 event that waits cannot be published") || strings.Contains(stdout, "much") {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		// It cannot see that, and lets no deploy pass, unless that is all that was asked about.
		const types = "nothing is wrong with the types and aggregates of 2 events that wait, payloads were not looked at\n"
		if code, stdout, stderr := check(viewer); code != exitFailed || stdout != types ||
			!strings.Contains(stderr, "may not read payloads") || !strings.Contains(stderr, "GRANT SELECT ON") {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		if code, stdout, stderr := check(viewer, "--no-payloads"); code != exitDone || stdout != types {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		// Nor does one that stops before the event.
		code, stdout, stderr = check(e, "--limit", "1", "-o", "json")
		if code != exitFailed || !strings.Contains(stdout, `"complete": false`) ||
			!strings.Contains(stderr, `"code":"check_incomplete"`) || !strings.Contains(stderr, "--limit 40000") {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		code, stdout, stderr = check(e, "--limit", "1")
		if code != exitFailed || stdout != "nothing is wrong with 1 event that waits, and there is more\n" {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		e.exec(t, `SELECT {schema}.outbox_emit('order_lost', 'order', '1', '{}')`)
		code, stdout, stderr = check(viewer, "-o", "json")
		if code != exitFailed || !strings.Contains(stdout, `"reason": "unknown_event_type"`) ||
			!strings.Contains(stdout, `"unpublishable": 1`) || !strings.Contains(stderr, `"code":"unpublishable_events"`) {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		code, stdout, stderr = viewer.call(t, "registry", "list", "--registry", registry, "--default-topic", "seen")
		if code != exitDone || !strings.Contains(stdout, "order_lost     unknown") ||
			!strings.Contains(stdout, "order_seen     registry  seen") {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		if code, _, stderr := check(e.as(t, "stranger")); code != exitNotLetIn ||
			!strings.Contains(stderr, "outboxctl grant") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		// Its schemas are no one document, and a relay reads them all the same.
		folder := t.TempDir()
		for name, text := range map[string]string{
			"registry.yaml": "contracts:\n  - {type: a, aggregate: order, topic: t, schema: a.json}\n",
			"a.json":        `{"$ref": "b.json"}`, "b.json": `{"$schema": "http://json-schema.org/draft-07/schema#"}`,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		two := filepath.Join(folder, "registry.yaml")
		if code, stdout, stderr := e.call(t, "registry", "check", "--registry", two); code != exitFailed ||
			!strings.Contains(stdout, "unknown_event_type") {
			t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		if code, _, stderr := e.call(t, "registry", "list", "--registry", two); code != exitFailed ||
			!strings.Contains(stderr, "the same $schema") {
			t.Errorf("exit code %d:\n%s", code, stderr)
		}
		if code, _, stderr := check(e, "--limit", "-1"); code != exitUsage || !strings.Contains(stderr, "limit") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}
