package contracts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// document is one of one type, with a schema.
func document(t *testing.T, contract outbox.Contract, schema string) contracts.Document {
	t.Helper()
	registry, err := outbox.NewRegistry(outbox.Define[json.RawMessage](contract))
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]json.RawMessage{}
	if schema != "" {
		schemas[contract.Type] = json.RawMessage(schema)
	}
	document, err := contracts.Of(registry, schemas)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func order() outbox.Contract {
	return outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"}
}

// told is a change in one line.
func told(changes []contracts.Change) (lines []string) {
	for _, change := range changes {
		line := change.Kind
		if change.Field != "" {
			line += " " + change.Field
		}
		if change.Breaks != contracts.Nobody {
			line += " breaks " + string(change.Breaks)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestDiffOfContracts: each change of a contract, and the other way round.
func TestDiffOfContracts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change            func(*outbox.Contract)
		forwards, reverse string
	}{
		"topic": {
			func(c *outbox.Contract) { c.Topic = "sales" },
			"topic_changed breaks consumers", "topic_changed breaks consumers",
		},
		"aggregate": {
			func(c *outbox.Contract) { c.Aggregate = "cart" },
			"aggregate_changed breaks both", "aggregate_changed breaks both",
		},
		"version": {
			func(c *outbox.Contract) { c.Version = 2 }, "version_raised", "version_lowered breaks consumers",
		},
		"on dead": {
			func(c *outbox.Contract) { c.OnDead = outbox.OnDeadBlock }, "on_dead_blocks", "on_dead_skips breaks consumers",
		},
		"attempts": {
			func(c *outbox.Contract) { c.MaxAttempts = 3 }, "max_attempts_changed", "max_attempts_changed",
		},
		"nothing": {func(*outbox.Contract) {}, "", ""},
	} {
		changed := order()
		c.change(&changed)
		before, after := document(t, order(), ""), document(t, changed, "")
		if got := strings.Join(told(contracts.Diff(before, after)), ", "); got != c.forwards {
			t.Errorf("%s: got %q, want %q", name, got, c.forwards)
		}
		if got := strings.Join(told(contracts.Diff(after, before)), ", "); got != c.reverse {
			t.Errorf("%s, the other way round: got %q, want %q", name, got, c.reverse)
		}
	}
	other := order()
	other.Type = "order_paid"
	got := told(contracts.Diff(document(t, order(), ""), document(t, other, "")))
	if want := []string{"type_removed breaks both", "type_added"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	with := document(t, order(), `{"type":"object"}`)
	if got := told(contracts.Diff(document(t, order(), ""), with)); !slices.Equal(got,
		[]string{"schema_added breaks producers"}) {
		t.Errorf("got %q", got)
	}
	if got := told(contracts.Diff(with, document(t, order(), ""))); !slices.Equal(got,
		[]string{"schema_removed breaks consumers"}) {
		t.Errorf("got %q", got)
	}
}

// schemaCase is two schemas, and what is told about them both ways.
type schemaCase struct{ before, after, forwards, reverse string }

// fields is a schema of an object with these.
func fields(fields string) string { return `{"type":"object","properties":{` + fields + `}}` }

// TestDiffOfFields: each change of a payload's fields, and the other way round.
func TestDiffOfFields(t *testing.T) {
	t.Parallel()
	compareBothWays(t, map[string]schemaCase{
		"a field": {
			fields(`"a":{}`), fields(`"a":{},"b":{"type":"string"}`), "field_added /b", "field_removed /b breaks consumers",
		},
		"a field of a closed object": {
			`{"properties":{"a":{}},"additionalProperties":false}`,
			`{"properties":{"a":{},"b":{}},"additionalProperties":false}`,
			"field_added /b", "field_removed /b breaks both",
		},
		"required": {
			`{"properties":{"a":{}}}`, `{"properties":{"a":{}},"required":["a"]}`,
			"field_required /a breaks producers", "field_optional /a breaks consumers",
		},
		"a field that is required": {
			`{}`, `{"properties":{"a":{}},"required":["a"]}`,
			"field_added /a, field_required /a breaks producers", "field_removed /a breaks consumers",
		},
		"another type": {
			fields(`"a":{"type":"string"}`), fields(`"a":{"type":"integer"}`),
			"type_changed /a breaks both", "type_changed /a breaks both",
		},
		"fractions": {
			fields(`"a":{"type":"integer"}`), fields(`"a":{"type":"number"}`),
			"type_widened /a breaks consumers", "type_narrowed /a breaks producers",
		},
		"null": {
			fields(`"a":{"type":["string"]}`), fields(`"a":{"type":["null","string"]}`),
			"type_widened /a breaks consumers", "type_narrowed /a breaks producers",
		},
		"any type": {
			fields(`"a":{}`), fields(`"a":{"type":"string"}`),
			"type_narrowed /a breaks producers", "type_widened /a breaks consumers",
		},
		"a value of an enum": {
			fields(`"a":{"enum":["x","y"]}`), fields(`"a":{"enum":["x"]}`),
			"enum_narrowed /a breaks producers", "enum_widened /a breaks consumers",
		},
		"an enum": {
			fields(`"a":{}`), fields(`"a":{"const":1}`),
			"enum_narrowed /a breaks producers", "enum_widened /a breaks consumers",
		},
		"other values": {
			fields(`"a":{"enum":["x","y"]}`), fields(`"a":{"enum":["y","z"]}`),
			"enum_changed /a breaks both", "enum_changed /a breaks both",
		},
		"the order of an enum": {fields(`"a":{"enum":["x","y"]}`), fields(`"a":{"enum":["y","x"]}`), "", ""},
		"closed": {
			fields(`"a":{"properties":{}}`), fields(`"a":{"properties":{},"additionalProperties":false}`),
			"closed /a breaks producers", "opened /a",
		},
		"other fields": {
			`{}`, `{"additionalProperties":{"type":"string"}}`,
			"type_narrowed /* breaks producers", "type_widened /* breaks consumers",
		},
		"elements": {
			fields(`"a":{"items":{"properties":{"b":{"minimum":1}}}}`),
			fields(`"a":{"items":{"properties":{"b":{"minimum":2}}}}`),
			"limit_narrowed /a/*/b breaks producers", "limit_widened /a/*/b breaks consumers",
		},
		"a first element": {
			`{"prefixItems":[{"type":"string"}]}`, `{"prefixItems":[{"type":"integer"}]}`,
			"type_changed /0 breaks both", "type_changed /0 breaks both",
		},
		"one more first element": {
			`{"prefixItems":[{}]}`, `{"prefixItems":[{},{}]}`, "rule_changed breaks both", "rule_changed breaks both",
		},
	})
}

// TestDiffOfRules: each change of what a field may be, and the other way round.
func TestDiffOfRules(t *testing.T) {
	t.Parallel()
	const draft7 = `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":`
	compareBothWays(t, map[string]schemaCase{
		"unique":         {`{}`, `{"uniqueItems":true}`, "limit_narrowed breaks producers", "limit_widened breaks consumers"},
		"a least length": {`{}`, `{"minLength":1}`, "limit_narrowed breaks producers", "limit_widened breaks consumers"},
		"a most": {
			`{"maximum":10}`, `{"maximum":9.5}`, "limit_narrowed breaks producers", "limit_widened breaks consumers",
		},
		"the same number": {`{"maximum":10}`, `{"maximum":10.0}`, "", ""},
		"a pattern":       {`{}`, `{"pattern":"x"}`, "limit_narrowed breaks producers", "limit_widened breaks consumers"},
		"another pattern": {
			`{"pattern":"x"}`, `{"pattern":"y"}`, "limit_changed breaks both", "limit_changed breaks both",
		},
		"a format": {`{}`, `{"format":"uuid"}`, "remark_changed", "remark_changed"},
		"a format that is a rule": {
			draft7 + `{}}}`, draft7 + `{"format":"uuid"}}}`,
			"limit_narrowed /a breaks producers", "limit_widened /a breaks consumers",
		},
		"a title": {
			`{}`, `{"title":"x","x-ours":1}`, "remark_changed, remark_changed", "remark_changed, remark_changed",
		},
		"a combination": {`{"anyOf":[{}]}`, `{"anyOf":[{},{}]}`, "rule_changed breaks both", "rule_changed breaks both"},
		"another draft": {
			`{}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
			"draft_changed breaks both", "draft_changed breaks both",
		},
		"the newest draft by name": {`{}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "", ""},
		"behind a reference": {
			`{"$defs":{"x":{"minLength":1}},"properties":{"a":{"$ref":"#/$defs/x"}}}`,
			`{"$defs":{"x":{"minLength":2}},"properties":{"a":{"$ref":"#/$defs/x"}}}`,
			"limit_narrowed /a breaks producers", "limit_widened /a breaks consumers",
		},
		"a reference in place of what it leads to": {
			`{"properties":{"a":{"minLength":1}}}`,
			`{"$defs":{"x":{"minLength":1}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, "", "",
		},
		"behind a combination": {
			`{"$defs":{"x":{"minLength":1}},"anyOf":[{"$ref":"#/$defs/x"}]}`,
			`{"$defs":{"x":{"minLength":2}},"anyOf":[{"$ref":"#/$defs/x"}]}`,
			"rule_changed breaks both", "rule_changed breaks both",
		},
		"what goes round": {
			`{"properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`, `{"properties":{"a":{"$ref":"#"},"b":{}}}`,
			"type_widened /a/b breaks consumers, type_widened /b breaks consumers",
			"type_narrowed /a/b breaks producers, type_narrowed /b breaks producers",
		},
		"nothing": {
			`{"$defs":{"x":{"minLength":1}},"anyOf":[{"$ref":"#/$defs/x"}],"properties":{"a":{"$ref":"#"}}}`,
			`{"properties":{"a":{"$ref":"#"}},"anyOf":[{"$ref":"#/$defs/x"}],"$defs":{"x":{"minLength":1}}}`, "", "",
		},
		"true and nothing": {fields(`"a":true`), fields(`"a":{}`), "", ""},
		"false and nothing": {
			fields(`"a":false`), fields(`"a":{}`), "rule_changed /a breaks both", "rule_changed /a breaks both",
		},
	})
}

func compareBothWays(t *testing.T, cases map[string]schemaCase) {
	t.Helper()
	for name, c := range cases {
		before, after := document(t, order(), c.before), document(t, order(), c.after)
		if got := strings.Join(told(contracts.Diff(before, after)), ", "); got != c.forwards {
			t.Errorf("%s: got %q, want %q", name, got, c.forwards)
		}
		if got := strings.Join(told(contracts.Diff(after, before)), ", "); got != c.reverse {
			t.Errorf("%s, the other way round: got %q, want %q", name, got, c.reverse)
		}
	}
}

// TestBreaking: by whom one asks for.
func TestBreaking(t *testing.T) {
	t.Parallel()
	changes := []contracts.Change{
		{Kind: "1"},
		{Kind: "2", Breaks: contracts.Producers},
		{Kind: "3", Breaks: contracts.Consumers},
		{Kind: "4", Breaks: contracts.Both},
	}
	for side, want := range map[contracts.Side]string{
		contracts.Both: "[2 breaks producers 3 breaks consumers 4 breaks both]", contracts.Nobody: "[]",
		contracts.Producers: "[2 breaks producers 4 breaks both]", contracts.Consumers: "[3 breaks consumers 4 breaks both]",
	} {
		if got := fmt.Sprint(told(contracts.Breaking(changes, side))); got != want {
			t.Errorf("%s: got %s, want %s", side, got, want)
		}
	}
}
