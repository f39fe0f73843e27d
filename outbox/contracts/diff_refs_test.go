package contracts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// TestDiffBehindReferences: however a schema refers to its parts, what changes there is told.
func TestDiffBehindReferences(t *testing.T) {
	t.Parallel()
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for name, schema := range map[string]string{ // ~ stands for what changes
		"an anchor":            `{"properties":{"a":{"$ref":"#x"}},"$defs":{"x":{"$anchor":"x",~}}}`,
		"an anchor of draft 7": `{` + draft7 + `"properties":{"a":{"$ref":"#x"}},"definitions":{"x":{"$id":"#x",~}}}`,
		"an anchor for more":   `{"properties":{"a":{"$ref":"#x"}},"$defs":{"x":{"$dynamicAnchor":"x",~}}}`,
		"an escaped space":     `{"properties":{"a":{"$ref":"#/$defs/my%20x"}},"$defs":{"my x":{~}}}`,
		"an escaped slash":     `{"properties":{"a":{"$ref":"#/$defs/m~1%7E0"}},"$defs":{"m/~":{~}}}`,
		"an element":           `{"properties":{"a":{"$ref":"#/$defs/l/allOf/0"}},"$defs":{"l":{"allOf":[{~}]}}}`,
		"the schema's own address": `{"$id":"http://e.com/o","properties":{"a":{"$ref":"http://e.com/o#/$defs/x"}},` +
			`"$defs":{"x":{~}}}`,
		"a part's address":          `{"$id":"http://e.com/o","properties":{"a":{"$ref":"i"}},"$defs":{"x":{"$id":"i",~}}}`,
		"a part's relative address": `{"properties":{"a":{"$ref":"i"}},"$defs":{"x":{"$id":"i",~}}}`,
		"an anchor in a part": `{"properties":{"a":{"$ref":"i#x"}},` +
			`"$defs":{"i":{"$id":"i","$defs":{"x":{"$anchor":"x",~}}}}}`,
		"a URN": `{"$id":"urn:example:o","properties":{"a":{"$ref":"urn:example:o#x"}},"$defs":{"x":{"$anchor":"x",` +
			`~}}}`,
		"a pointer within a part": `{"properties":{"a":{"$ref":"#/$defs/i"}},"$defs":{"y":{},"i":{"$id":"http://e.com/i",` +
			`"$ref":"#/$defs/y","$defs":{"y":{~}}}}}`,
		"an address of draft 4": `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"$ref":"i"}},` +
			`"definitions":{"x":{"id":"i",~}}}`,
		"draft 7, where nothing counts beside a reference": `{` + draft7 + `"properties":{"a":{"$id":"http://e.com/i",` +
			`"$ref":"#/definitions/x"}},"definitions":{"x":{~}}}`,
	} {
		of := func(change string) contracts.Document {
			return document(t, order(), strings.Replace(schema, ",~", change, 1))
		}
		if !strings.Contains(schema, ",~") {
			of = func(change string) contracts.Document {
				return document(t, order(), strings.Replace(schema, "{~", "{"+strings.TrimPrefix(change, ","), 1))
			}
		}
		text, number := of(`,"type":"string"`), of(`,"type":"integer"`)
		if got := fmt.Sprint(told(contracts.Diff(text, number))); got != "[type_changed /a breaks both]" {
			t.Errorf("%s: got %s", name, got)
		}
		remark := of(`,"type":"string","title":"x"`)
		if got := fmt.Sprint(told(contracts.Diff(text, remark))); got != "[remark_changed /a]" {
			t.Errorf("%s, with a remark: got %s", name, got)
		}
	}
}

// TestDiffOfWhatCannotBeFollowed: where nobody can tell what a reference means, any change breaks both sides.
func TestDiffOfWhatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{ // ~ stands for what changes
		"$dynamicRef":          `{"properties":{"a":{"$dynamicRef":"#x"}},"$defs":{"x":{"$dynamicAnchor":"x","type":"~"}}}`,
		"$dynamicRef of names": `{"propertyNames":{"$dynamicRef":"#x"},"$defs":{"x":{"$dynamicAnchor":"x","pattern":"~"}}}`,
		"$dynamicRef, behind": `{"anyOf":[{"$ref":"#/$defs/y"}],` +
			`"$defs":{"y":{"$dynamicRef":"#x"},"x":{"$dynamicAnchor":"x","type":"~"}}}`,
		"$recursiveRef": `{"items":{"$recursiveRef":"#"},"title":"~"}`,
		"another file":  `{"properties":{"a":{"$ref":"b.json"}},"$defs":{"x":{"type":"~"}}}`,
		"nothing":       `{"properties":{"a":{"$ref":"#/$defs/y"}},"$defs":{"x":{"type":"~"}}}`,
		"no element":    `{"properties":{"a":{"$ref":"#/allOf/01"}},"allOf":[{},{}],"title":"~"}`,
		"an address that is two": `{"properties":{"a":{"$ref":"#x"}},` +
			`"$defs":{"x":{"$anchor":"x","type":"~"},"y":{"$anchor":"x"}}}`,
		"a part of another draft": `{"properties":{"a":{"$id":"http://e.com/a",` +
			`"$schema":"http://json-schema.org/draft-07/schema#","title":"~"}}}`,
	} {
		of := func(change string) contracts.Document {
			return document(t, order(), strings.ReplaceAll(schema, `~`, change))
		}
		got := contracts.Diff(of("string"), of("integer"))
		for _, side := range []contracts.Side{contracts.Producers, contracts.Consumers} {
			if len(contracts.Breaking(got, side)) == 0 {
				t.Errorf("%s: nothing breaks %s: %s", name, side, told(got))
			}
		}
		if got := contracts.Diff(of("string"), of("string")); len(got) > 0 {
			t.Errorf("%s: nothing has changed, got %s", name, told(got))
		}
	}
	const other = `{"$id":"http://%s/a","properties":{"a":{"$ref":"i"}},` +
		`"$defs":{"x":{"$id":"http://e.com/i","type":"string"},"y":{"$id":"http://f.com/i","type":"integer"}}}`
	compareBothWays(t, map[string]schemaCase{
		"an address from which others are told": {
			fmt.Sprintf(other, "e.com"), fmt.Sprintf(other, "f.com"),
			"remark_changed, type_changed /a breaks both, remark_changed /a",
			"remark_changed, type_changed /a breaks both, remark_changed /a",
		},
		"a schema of JSON Schema": {
			`{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`,
			`{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}},"title":"x"}`,
			"remark_changed", "remark_changed",
		},
		"behind the name of a keyword": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"enum":{"$ref":"#/definitions/x"}},` +
				`"definitions":{"x":{"required":["q"]}}}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"enum":{"$ref":"#/definitions/x"}},` +
				`"definitions":{"x":{"required":["r"]}}}`,
			"rule_changed breaks both", "rule_changed breaks both",
		},
	})
}

// TestDiffOfWhatGoesRound: a schema that refers to itself is compared with any other, and it ends.
func TestDiffOfWhatGoesRound(t *testing.T) {
	t.Parallel()
	const round = `{"type":"object","additionalProperties":{"$ref":"#"}}`
	compareBothWays(t, map[string]schemaCase{
		"with one that does not": {
			round, `{"type":"object"}`, "type_widened /* breaks consumers", "type_narrowed /* breaks producers",
		},
		"with one that names more": {
			`{"items":{"$ref":"#"}}`, `{"items":{"items":{"type":"string","items":{"$ref":"#"}}}}`,
			"type_narrowed /*/* breaks producers", "type_widened /*/* breaks consumers",
		},
	})
	var fields []string
	for i := range 30 {
		fields = append(fields, fmt.Sprintf(`"f%d":{"$ref":"#/$defs/d%d"}`, i, i))
	}
	all := strings.Join(fields, ",")
	var before, after []string
	for i := range 30 {
		before = append(before, fmt.Sprintf(`"d%d":{"properties":{%s},"minLength":1}`, i, all))
		after = append(after, fmt.Sprintf(`"d%d":{"properties":{%s},"minLength":2}`, i, strings.ReplaceAll(all, "defs/d",
			"defs/e")))
		after[i] = strings.Replace(after[i], `"d`, `"e`, 1)
	}
	got := contracts.Diff(document(t, order(), `{"$ref":"#/$defs/d0","$defs":{`+strings.Join(before, ",")+`}}`),
		document(t, order(), `{"$ref":"#/$defs/e0","$defs":{`+strings.Join(after, ",")+`}}`))
	if len(contracts.Breaking(got, contracts.Producers)) == 0 || len(got) > 5000 {
		t.Errorf("got %d changes", len(got))
	}
}

// TestDiffTellsWhatBreaks: behind any number of changes that break nobody, and of those that break another side.
func TestDiffTellsWhatBreaks(t *testing.T) {
	t.Parallel()
	of := func(title, last string, least int) contracts.Document {
		var many []string
		for i := range 1200 {
			many = append(many, fmt.Sprintf(`"f%04d":{"title":%q,"maximum":%d}`, i, title, least))
		}
		return document(t, order(), fields(strings.Join(many, ",")+`,"z":{"type":`+last+`}`))
	}
	got := contracts.Diff(of("x", `["string","null"]`, 1), of("y", `"string"`, 2))
	producers, consumers := contracts.Breaking(got, contracts.Producers), contracts.Breaking(got, contracts.Consumers)
	if len(producers) != 1 || len(consumers) != 1000 {
		t.Errorf("%d changes break producers, %d consumers", len(producers), len(consumers))
	}
}
