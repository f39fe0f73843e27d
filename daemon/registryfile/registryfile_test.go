package registryfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox"
)

// folder writes files and returns the path of registry.yaml among them.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "registry.yaml")
}

const contracts = `
contracts:
  - type: order_created
    version: 2
    aggregate: vendor_order
    topic: orders
    on_dead: block
    max_attempts: 3
    schema:
      type: object
      required: [orderId, lines]
      properties:
        orderId: {type: string, minLength: 1}
        status: {enum: [placed, paid]}
        lines:
          type: array
          items: {$ref: "schemas/line.json#/$defs/line"}
        prices:
          type: object
          additionalProperties: {type: integer}
  - type: order_seen
    aggregate: vendor_order
    schema: schemas/seen.yaml
  - {type: anything, aggregate: thing}
`

func example(t *testing.T) string {
	t.Helper()
	return folder(t, map[string]string{
		"registry.yaml": contracts,
		"schemas/line.json": `{"$defs": {"line": {"type": "object", "required": ["qty"], "properties": {"qty": {"type": ` +
			`"integer", "minimum": 1}}}}}`,
		"schemas/seen.yaml": "type: object\nproperties:\n  by: {type: string, pattern: '^[a-z]+$'}\n  line: {$ref: " +
			"'line.json#/$defs/line'}\n",
	})
}

func stored(t *testing.T, eventType, aggregate, data string) outbox.Stored {
	t.Helper()
	id := outbox.NewID()
	payload := fmt.Sprintf(`{"version":1,"eventId":%q,"occurredAt":"2026-01-02T03:04:05Z","data":%s}`, id, data)
	return outbox.Stored{
		ID: id, EventType: eventType, AggregateType: aggregate, AggregateID: "1", Payload: []byte(payload),
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	name := example(t)
	file, err := registryfile.Load(name, registryfile.Options{DefaultTopic: "domain"})
	if err != nil {
		t.Fatal(err)
	}
	if types := file.Registry.Types(); !slices.Equal(types, []string{"anything", "order_created", "order_seen"}) {
		t.Errorf("types: %v", types)
	}
	created, _ := file.Registry.Contract("order_created")
	if created.Version != 2 || created.Aggregate != "vendor_order" || created.Topic != "orders" ||
		created.OnDead != outbox.OnDeadBlock || created.MaxAttempts != 3 {
		t.Errorf("got %+v", created)
	}
	seen, _ := file.Registry.Contract("order_seen")
	if seen.Version != 1 || seen.Topic != "domain" || seen.OnDead != outbox.OnDeadSkip || seen.MaxAttempts != 0 {
		t.Errorf("got %+v", seen)
	}
	// The hash is that of `cat FILES | sha256sum`.
	if len(file.Files) != 3 {
		t.Errorf("files: %v", file.Files)
	}
	var all []byte
	for _, part := range file.Files {
		text, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	if sum := sha256.Sum256(all); file.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("the hash is %s", file.SHA256)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "schemas/line.json"), []byte(`{"$defs": {"line": {}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := registryfile.Load(name, registryfile.Options{DefaultTopic: "domain"}); err != nil ||
		again.SHA256 == file.SHA256 {
		t.Errorf("another schema has the same hash: %v", err)
	}
}

// RG-2, V3: a payload that breaks its schema is refused with place and rule, and never quoted.
func TestPayloadsAreHeldToTheirSchema(t *testing.T) {
	t.Parallel()
	file, err := registryfile.Load(example(t), registryfile.Options{DefaultTopic: "domain"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ eventType, data, want string }{
		{"order_created", `{"orderId":"1","lines":[]}`, ""},
		{"order_created", `{"orderId":"1","lines":[{"qty":2}],"status":"paid","newer":{"field":1}}`, ""},
		{"order_created", `{}`, "data: /: required: orderId, lines missing"},
		{"order_created", `{"orderId":5,"lines":[]}`, "data: /orderId: type: got number, want string"},
		{"order_created", `{"orderId":"","lines":[]}`, "data: /orderId: minLength"},
		{"order_created", `{"orderId":"1","lines":[],"status":"hunter2"}`, "data: /status: enum"},
		{"order_created", `{"orderId":"1","lines":[{"qty":2},{"qty":0}]}`, "data: /lines/1/qty: minimum"},
		{"order_created", `{"orderId":"1","lines":[{}]}`, "data: /lines/0: required: qty missing"},
		{
			"order_created", `{"orderId":"1","lines":[],"prices":{"hunter2":"x"}}`,
			"data: /prices/*: type: got string, want integer",
		},
		{"order_created", `{"orderId":1,"lines":1,"status":1,"prices":1}`, "and more"},
		{"order_created", `null`, "invalid_payload"},
		{"order_created", `[]`, "must be a JSON object"},
		{"order_created", `{"orderId":"1","lines":[],"a":1e999999}`, "exponent"},
		{"order_seen", `{"by":"me","line":{"qty":1}}`, ""},
		{"order_seen", `{"by":"hunter2 "}`, "data: /by: pattern"},
		{"order_seen", `{"line":{"qty":0.5}}`, "data: /line/qty: "},
		{"anything", `{}`, ""},
		{"anything", `{"a":[1]}`, ""},
		{"anything", `1`, "must be a JSON object"},
		{"never_heard", `{}`, "unknown_event_type"},
	} {
		aggregate := "vendor_order"
		if test.eventType == "anything" {
			aggregate = "thing"
		}
		_, err := file.Registry.Check(stored(t, test.eventType, aggregate, test.data))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s %s: got %v, want %q", test.eventType, test.data, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the payload is quoted: %v", err)
		}
	}
	if _, err := file.Registry.Check(stored(t, "anything", "other", `{}`)); err == nil ||
		!strings.Contains(err.Error(), "aggregate_mismatch") {
		t.Errorf("another aggregate: %v", err)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	one := func(more string) string { return "contracts:\n  - {type: a, aggregate: b, topic: c" + more + "}\n" }
	for _, test := range []struct{ name, registry, schema, want string }{
		{"empty", "", "", "R: must have a list of contracts"},
		{"no contracts", "{}", "", "R: must have a list of contracts"},
		{"empty list", "contracts: []", "", "R:1: there is no contract"},
		{"no list", "contracts: {}", "", "R:1: contracts must be a list"},
		{"unknown key", "contract: []", "", `R:1: "contract" is not known; did you mean contracts?`},
		{"a word", "contracts:\n  - a\n", "", "R:2: a contract must have keys"},
		{"unknown field", one(", topik: x"), "", `R:2: "topik" is not known; did you mean topic?`},
		{"no topic", "contracts:\n  - {type: a, aggregate: b}\n", "", `R:2: "a": Topic: missing`},
		{"no type", "contracts:\n  - {aggregate: b, topic: c}\n", "", `R:2: "": Type: missing`},
		{"bad type", "contracts:\n  - {type: a b, aggregate: b, topic: c}\n", "", `R:2: "a b": Type: must be letters`},
		{"twice", one("") + "  - {type: a, aggregate: b, topic: c}\n", "", `R:3: "a" is defined twice, first in line 2`},
		{"version", one(", version: 0"), "", "R:2: version: must be a whole number from 1"},
		{"version as text", one(", version: 1.5"), "", "R:2: version: must be a whole number"},
		{"attempts", one(", max_attempts: 99999999999"), "", "R:2: max_attempts: must be a whole number"},
		{"on_dead", one(", on_dead: explode"), "", "R:2: on_dead: must be skip or block"},
		{"null", one(", version: ~"), "", "R:2: version: must be one value"},
		{"list", one(", topic2: [x]"), "", "R:2: topic2: must be one value"},
		{"same key", one(", type: x"), "", `R:2: the key "type" is there twice`},
		{"anchor", one(", schema: &x {}"), "", "R:2: anchors and aliases are not taken"},
		{"tab", "contracts:\n\t- a\n", "", "R:2: found character"},
		{"documents", one("") + "---\n" + one(""), "", "R:3: a second document"},
		{"schema list", one(", schema: [a]"), "", `R:2: "a": schema: must be a JSON Schema or the name of a file`},
		{"schema null", one(", schema: ~"), "", `schema: must be`},
		{"schema missing", one(", schema: nowhere.json"), "", `R:2: "a": schema: statat nowhere.json: no such file`},
		{"schema is a folder", one(", schema: ."), "", "not a regular file"},
		{"schema outside", one(", schema: ../../etc/passwd"), "", "path escapes from parent"},
		{"schema absolute", one(", schema: /etc/passwd"), "", "path escapes from parent"},
		{"schema's rules", one(", schema: {type: strnig}"), "", `R:2: "a": schema: `},
		{"schema's pattern", one(", schema: {pattern: '('}"), "", "schema: "},
		{"schema's number", one(", schema: {minimum: 0x10}"), "", "line 2: a number must be written as JSON has it"},
		{"schema not JSON", one(", schema: s.json"), "{", "s.json: not JSON"},
		{
			"schema too deep", one(", schema: s.json"), strings.Repeat(`{"not":`, 70) + "{}" + strings.Repeat("}", 70),
			"s.json: nested deeper than 64 levels",
		},
		{"schema very deep", one(", schema: s.json"), strings.Repeat(`[`, 100_000), "s.json: not JSON"},
		{
			"schema too large", one(", schema: s.json"), `{"x":"` + strings.Repeat("x", 1<<20) + `"}`,
			"s.json: more than 1048576 bytes",
		},
		{"reference outside", one(", schema: s.json"), `{"$ref": "../../../etc/passwd"}`, "no such file"},
		{"reference to a file URL", one(", schema: s.json"), `{"$ref": "file:///etc/passwd"}`, "nothing is fetched"},
		{"reference to a host", one(", schema: s.json"), `{"$ref": "registry://host/s.json"}`, "nothing is fetched"},
		{"reference to nothing", one(", schema: s.json"), `{"$ref": "#/$defs/x"}`, "schema: "},
		{"unknown draft", one(", schema: s.json"), `{"$schema": "http://127.0.0.1:1/x"}`, "nothing is fetched"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			name := folder(t, map[string]string{"registry.yaml": test.registry, "s.json": test.schema})
			_, err := registryfile.Load(name, registryfile.Options{})
			if _, invalid := errors.AsType[*registryfile.Error](err); !invalid {
				t.Fatalf("got %v", err)
			}
			if got := strings.ReplaceAll(err.Error(), name, "R"); !strings.Contains(got, test.want) {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	name := folder(t, map[string]string{"registry.yaml": `contracts:
  - type: a
    aggregate: b
    topic: c
    on_dead: no
    version: x
  - type: d e
    aggregate: b
    topic: c
  - type: f
    aggregate: b
    topic: c
    schema: nowhere.json
`})
	_, err := registryfile.Load(name, registryfile.Options{})
	var invalid *registryfile.Error
	if !errors.As(err, &invalid) || len(invalid.Problems) != 4 {
		t.Fatalf("got %v", err)
	}
	for i, line := range []string{":5: ", ":6: ", ":7: ", ":13: "} {
		if !strings.HasPrefix(invalid.Problems[i], name+line) {
			t.Errorf("problem %d: %s", i, invalid.Problems[i])
		}
	}
}

// SSRF: whatever a schema names, nobody is called.
func TestNothingIsFetched(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	for _, schema := range []string{
		`{"$ref": "URL/x.json"}`, `{"$schema": "URL/draft"}`, `{"$id": "URL/a.json", "$ref": "b.json"}`,
		`{"$dynamicRef": "URL/x"}`,
		`{"properties": {"a": {"items": {"$ref": "URL/x#/a"}}}}`, `{"$id": "URL/a", "properties": {"a": {"$ref": "/b"}}}`,
	} {
		name := folder(t, map[string]string{
			"registry.yaml": "contracts:\n  - {type: a, aggregate: b, topic: c, schema: s.json}\n",
			"s.json":        strings.ReplaceAll(schema, "URL", server.URL),
		})
		if _, err := registryfile.Load(name, registryfile.Options{}); err == nil ||
			!strings.Contains(err.Error(), "nothing is fetched") {
			t.Errorf("%s: got %v", schema, err)
		}
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls", calls.Load())
	}
}

// A symbolic link out of the folder is not followed; one inside it, as Kubernetes mounts them, is.
func TestLinks(t *testing.T) {
	t.Parallel()
	name := folder(t, map[string]string{
		"registry.yaml": "contracts:\n  - {type: a, aggregate: b, topic: c, schema: s.json}\n",
		"..data/s.json": `{"type": "object"}`,
	})
	outside := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(outside, []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(name), "s.json")
	if err := os.Symlink("..data/s.json", link); err != nil {
		t.Fatal(err)
	}
	if _, err := registryfile.Load(name, registryfile.Options{}); err != nil {
		t.Errorf("a link inside: %v", err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := registryfile.Load(name, registryfile.Options{}); err == nil {
		t.Error("a link outside was followed")
	}
}

// V6: a schema whose check would take longer than the universe lasts is left after its steps, and the next
// payload is checked as ever.
func TestAnEndlessCheckEnds(t *testing.T) {
	t.Parallel()
	name := folder(t, map[string]string{
		"registry.yaml": "contracts:\n  - {type: a, aggregate: b, topic: c, schema: s.json}\n",
		"s.json": `{"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"x": {"allOf": [{"$ref": "#/$defs/x"}, {"$ref": ` +
			`"#/$defs/x"}, {"$ref": "#/$defs/x"}]}},
			"additionalProperties": false}}}`,
	})
	file, err := registryfile.Load(name, registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"x":`, 50) + "{}" + strings.Repeat("}", 50)
	for range 2 {
		if _, err := file.Registry.Check(stored(t, "a", "b", deep)); err == nil ||
			!strings.Contains(err.Error(), "too many steps") {
			t.Errorf("got %v", err)
		}
		if _, err := file.Registry.Check(stored(t, "a", "b", `{"x":{"x":{}}}`)); err != nil {
			t.Errorf("got %v", err)
		}
	}
}

// What a large but honest payload takes is within the steps.
func TestLargePayloadsAreWithinTheSteps(t *testing.T) {
	t.Parallel()
	name := folder(t, map[string]string{
		"registry.yaml": "contracts:\n  - {type: a, aggregate: b, topic: c, schema: {properties: {n: {items: {anyOf: " +
			"[{type: integer}, {type: string}]}}}}}\n",
	})
	file, err := registryfile.Load(name, registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.TrimSuffix(strings.Repeat("1,", 100_000), ",")
	if _, err := file.Registry.Check(stored(t, "a", "b", `{"n":[`+numbers+`]}`)); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := file.Registry.Check(stored(t, "a", "b", `{"n":[`+strings.ReplaceAll(numbers, "1", "[]")+`]}`)); err ==
		nil || len(err.Error()) > 500 {
		t.Errorf("got %.600v", err)
	}
}

// Many at a time, each counted by itself.
func TestChecksDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	file, err := registryfile.Load(example(t), registryfile.Options{DefaultTopic: "domain"})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := stored(t, "order_created", "vendor_order", `{"orderId":"1","lines":[{"qty":1}]}`),
		stored(t, "order_created", "vendor_order", `{"orderId":"1","lines":[{"qty":0}]}`)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range 50 {
				if _, err := file.Registry.Check(good); err != nil {
					t.Errorf("a good one: %v", err)
				}
				if _, err := file.Registry.Check(bad); err == nil {
					t.Error("a bad one was accepted")
				}
			}
		})
	}
	group.Wait()
}

func TestJSONIsTakenToo(t *testing.T) {
	t.Parallel()
	name := folder(t, map[string]string{"registry.yaml": "{\n\t\"contracts\": [\n\t\t{\"type\": \"a\", \"aggregate\": " +
		"\"b\", \"topic\": \"c\\/d \\ud83d\\ude00 \\\\u0041\",\n\t\t\"schema\": {\"type\": \"object\"}}\n\t]\n}\n"})
	file, err := registryfile.Load(name, registryfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if contract, _ := file.Registry.Contract("a"); contract.Topic != "c/d 😀 \\u0041" {
		t.Errorf("got %+v", contract)
	}
}

func TestExportIsReadBack(t *testing.T) {
	t.Parallel()
	type payload struct{}
	registry, err := outbox.NewRegistry(
		outbox.Define[payload](outbox.Contract{
			Type: "b", Aggregate: "thing", Topic: "t: 1", Version: 3, OnDead: outbox.OnDeadBlock, MaxAttempts: 7,
		}),
		outbox.Define[payload](outbox.Contract{Type: "no", Aggregate: "1", Topic: "yes"}),
	)
	if err != nil {
		t.Fatal(err)
	}
	text, err := registryfile.Export(registry)
	if err != nil {
		t.Fatal(err)
	}
	file, err := registryfile.Load(folder(t, map[string]string{"registry.yaml": string(text)}), registryfile.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, eventType := range registry.Types() {
		want, _ := registry.Contract(eventType)
		got, _ := file.Registry.Contract(eventType)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// FuzzRegistryFile: whatever the file, the schema and the payload hold, nothing panics, and an accepted
// registry answers.
func FuzzRegistryFile(f *testing.F) {
	f.Add(contracts, `{"$defs": {"line": {}}}`, `{}`)
	f.Add("contracts:\n  - {type: a, aggregate: b, topic: c, schema: schemas/line.json}\n",
		`{"type":"object","required":["x"]}`, `{"x":1}`)
	f.Add("contracts:\n  - {type: a, aggregate: b, topic: c, schema: schemas/line.json}\n", `{"$ref":"#"}`,
		`{"x":{"x":1}}`)
	f.Add("contracts:\n  - {type: a, aggregate: b, topic: c, schema: schemas/line.json}\n",
		`{"$dynamicRef":"#a","$dynamicAnchor":"a","unevaluatedProperties":false}`, `{"x":[1,1]}`)
	f.Add("contracts:\n  - {type: a, aggregate: b, topic: c, schema: {multipleOf: 1e-300, items: {not: {}}}}\n", `true`,
		`{"x":1e300}`)
	f.Fuzz(func(t *testing.T, registry, schema, data string) {
		name := folder(t, map[string]string{
			"registry.yaml": registry, "schemas/line.json": schema, "schemas/seen.yaml": schema,
		})
		file, err := registryfile.Load(name, registryfile.Options{DefaultTopic: "domain"})
		if err != nil || !json.Valid([]byte(data)) {
			return
		}
		for _, eventType := range file.Registry.Types() {
			contract, _ := file.Registry.Contract(eventType)
			event := stored(t, eventType, contract.Aggregate, data)
			if _, err := file.Registry.Check(event); err != nil && !errors.As(err, new(*outbox.ContractError)) {
				t.Errorf("not a contract's error: %v", err)
			}
			if !bytes.Contains(event.Payload, []byte(data)) {
				t.Error("the payload was changed")
			}
		}
	})
}
