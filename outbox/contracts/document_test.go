package contracts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
	"github.com/posthaste-dev/posthaste/publish"
)

// TestDocumentIsStable: equal registries have equal documents, in whichever order they were written.
func TestDocumentIsStable(t *testing.T) {
	t.Parallel()
	paid := order()
	paid.Type, paid.OnDead, paid.MaxAttempts = "order_paid", outbox.OnDeadBlock, 3
	var texts []string
	for _, schema := range []string{`{"b": 1.50, "a": "<x>"}`, `{"a":"<x>","b":1.50}`} {
		first, second := outbox.Define[json.RawMessage](order()), outbox.Define[json.RawMessage](paid)
		if len(texts) > 0 {
			first, second = second, first
		}
		registry, err := outbox.NewRegistry(first, second)
		if err != nil {
			t.Fatal(err)
		}
		made, err := contracts.Of(registry, map[string]json.RawMessage{"order_paid": json.RawMessage(schema)})
		if err != nil {
			t.Fatal(err)
		}
		text, err := made.JSON()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	const want = `{
  "contracts": [
    {
      "type": "order_created",
      "version": 1,
      "aggregate": "order",
      "topic": "orders",
      "on_dead": "skip"
    },
    {
      "type": "order_paid",
      "version": 1,
      "aggregate": "order",
      "topic": "orders",
      "on_dead": "block",
      "max_attempts": 3,
      "schema": {
        "a": "<x>",
        "b": 1.50
      }
    }
  ]
}
`
	for _, got := range texts {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestAsyncAPI: what is in the document; that it is one, the official parser says in test/suite/contracts.
func TestAsyncAPI(t *testing.T) {
	t.Parallel()
	contract := order()
	contract.Topic = "shop/orders {eu}"
	made := document(t, contract, `{"$schema":"x","$defs":{"n":{"type":"integer"}},`+
		`"properties":{"n":{"$ref":"#/$defs/n"}}}`)
	text, err := made.AsyncAPI(contracts.AsyncAPI{
		Title: "Shop", Formats: map[string]publish.Format{contract.Topic: publish.CloudEvents}, Source: "/shop",
	})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := made.AsyncAPI(contracts.AsyncAPI{
		Title: "Shop", Formats: map[string]publish.Format{contract.Topic: publish.CloudEvents}, Source: "/shop",
	})
	if string(text) != string(again) {
		t.Error("it is another text the second time")
	}
	compact := strings.Join(strings.Fields(string(text)), "")
	for _, part := range []string{
		`"asyncapi":"3.0.0"`, `"title":"Shop"`, `"address":null`, `"title":"shop/orders{eu}"`,
		`"$ref":"#/components/schemas/order_created/$defs/n"`, `"ce-source":{"const":"/shop"`,
		`"event_type":{"const":"order_created"`, `"aggregate_type":{"const":"order"`, `"action":"send"`,
	} {
		if !strings.Contains(compact, part) {
			t.Errorf("it lacks %s:\n%s", part, text)
		}
	}
	if strings.Contains(compact, `"$schema"`) {
		t.Error("a part of a document has a $schema")
	}
	plain, err := made.AsyncAPI(contracts.AsyncAPI{})
	if err != nil || strings.Contains(string(plain), "ce-") || !strings.Contains(string(plain), `"title": "Events"`) {
		t.Errorf("%v\n%s", err, plain)
	}
}

// TestAsyncAPILeadsSomewhere: however a schema refers to its parts, in the document the reference is a pointer to them.
func TestAsyncAPILeadsSomewhere(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"properties":{"a":{"$ref":"#m"}},"$defs":{"m":{"$anchor":"m","type":"string"}}}`: `{"$defs":{"m":` +
			`{"type":"string"}},"properties":{"a":{"$ref":"#/components/schemas/order_created/$defs/m"}}}`,
		`{"$id":"http://e.com/o","items":{"$ref":"http://e.com/o#/$defs/my%20x"},"$defs":{"my x":{}}}`: `{"$defs":{"my x":` +
			`{}},"items":{"$ref":"#/components/schemas/order_created/$defs/my%20x"}}`,
		`{"items":{"$id":"http://e.com/i","$ref":"#/$defs/x","$defs":{"x":{}}}}`: `{"items":{"$defs":{"x":{}},` +
			`"$ref":"#/components/schemas/order_created/items/$defs/x"}}`,
		`{"properties":{"$id":{"type":"string"},"a":{"$ref":"#"}}}`: `{"properties":{"$id":{"type":"string"},` +
			`"a":{"$ref":"#/components/schemas/order_created"}}}`,
		`{"items":{"$ref":"http://json-schema.org/draft-07/schema#"}}`: `{"items":{"$ref":` +
			`"http://json-schema.org/draft-07/schema#"}}`,
	} {
		text, err := document(t, order(), schema).AsyncAPI(contracts.AsyncAPI{})
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		var made struct {
			Components struct{ Schemas map[string]json.RawMessage }
		}
		if err := json.Unmarshal(text, &made); err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, made.Components.Schemas["order_created"]); err != nil || compact.String() != want {
			t.Errorf("%s: %v, got %s, want %s", schema, err, &compact, want)
		}
	}
	for schema, want := range map[string]string{
		`{"items":{"$ref":"#none"}}`:                                     `"#none" leads to nothing`,
		`{"items":{"$ref":"b.json"}}`:                                    `"b.json" leads to nothing`,
		`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`:            "the same $id or $anchor",
		`{"items":{"$schema":"http://json-schema.org/draft-07/schema"}}`: "a $schema of their own",
	} {
		if _, err := document(t, order(), schema).AsyncAPI(contracts.AsyncAPI{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestExample: what a schema prescribes or proposes, or something of the right type.
func TestExample(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		"":                   `{}`,
		`{"type":"string"}`:  `{}`,
		`{"required":["a"]}`: `{"a":"a"}`,
		`{"properties":{"a":{"const":7},"b":{"default":1},"c":{"examples":["x"]},"d":{"enum":["y","z"]}}}`: `{"a":7,"b":1,` +
			`"c":"x","d":"y"}`,
		`{"properties":{"a":{"type":"integer","minimum":5},"b":{"type":"number","maximum":0.5},"c":{"type":"integer",` +
			`"exclusiveMinimum":3},"d":{"type":"integer","multipleOf":4},"e":{"type":["null","integer"]}}}`: `{"a":5,"b":0.5,` +
			`"c":4,"d":4,"e":1}`,
		`{"properties":{"a":{"type":"array","minItems":2,"items":{"$ref":"#/$defs/x"}}},` +
			`"$defs":{"x":{"type":"boolean"}}}`: `{"a":[false,false]}`,
		`{"properties":{"a":{"$ref":"#x"}},"$defs":{"x":{"$anchor":"x","type":"integer"}}}`: `{"a":1}`,
		`{"properties":{"größe":{"maxLength":3},"öl":{"minLength":4}}}`:                     `{"größe":"grö","öl":"öl.."}`,
		`{"properties":{"a":{"type":"string","minLength":5},"beta":{"type":"string","maxLength":2},` +
			`"c":{"format":"date"}}}`: `{"a":"a....","beta":"be","c":"2026-01-31"}`,
	} {
		contract, _ := document(t, order(), schema).Find("order_created")
		if got := string(contract.Example()); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf(`"f%d":{"$ref":"#"}`, i))
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`,
		`{"type":"object","properties":{` + strings.Join(many, ",") + `},"required":["f0","f1"]}`,
		`{"type":"object","properties":{"a":{"type":"array","minItems":10,"items":{"$ref":"#"}}},"required":["a"]}`,
	} {
		contract, _ := document(t, order(), schema).Find("order_created")
		if got := contract.Example(); len(got) > 20_000 || !json.Valid(got) {
			t.Errorf("what goes round has no end: %d bytes, %.100s", len(got), got)
		}
	}
}

// TestSQL: a call for each type, that says where it is not good yet.
func TestSQL(t *testing.T) {
	t.Parallel()
	made := document(t, order(), `{"properties":{"a":{"const":"it's \\ "}}}`)
	text := made.SQL(`my"schema`, func(string, json.RawMessage) error { return errors.New("/a:\nno") })
	const want = `
-- order_created, about order, to topic orders
-- This data does not keep the schema yet: /a: no
SELECT id, created FROM "my""schema".outbox_emit('order_created', 'order', 'order-1',
  E'{"a":"it''s \\\\ "}'::json, version => 1);
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
