package contracts_test

import "testing"

// TestDiffOfOtherFields: a field that gets or loses its name was, or is, held to the rules of the fields without one.
func TestDiffOfOtherFields(t *testing.T) {
	t.Parallel()
	// beside is a schema with these fields, and rules for others.
	beside := func(fields, others string) string { return `{"properties":{` + fields + `},` + others + `}` }
	const texts, number = `"additionalProperties":{"type":"string"}`, `"n":{"type":"integer"}`
	compareBothWays(t, map[string]schemaCase{
		"others of another type": {
			beside("", texts), beside(number, texts), "field_added /n breaks both", "field_removed /n breaks both",
		},
		"others of the same type": {
			beside("", texts), beside(`"n":{"type":"string"}`, texts), "field_added /n", "field_removed /n breaks consumers",
		},
		"others of more types": {
			beside("", `"additionalProperties":{"type":["string","integer"]}`),
			beside(number, `"additionalProperties":{"type":["string","integer"]}`),
			"field_added /n breaks producers", "field_removed /n breaks consumers",
		},
		"others of fewer types": {
			beside("", `"additionalProperties":{"type":"integer"}`),
			beside(`"n":{"type":"number"}`, `"additionalProperties":{"type":"integer"}`),
			"field_added /n breaks consumers", "field_removed /n breaks both",
		},
		"others of any kind": {
			beside("", `"additionalProperties":{"title":"x"}`), beside(number, `"additionalProperties":{"title":"x"}`),
			"field_added /n", "field_removed /n breaks consumers",
		},
		"no others": {
			beside(`"m":{}`, `"unevaluatedProperties":false`), beside(`"m":{},`+number, `"unevaluatedProperties":false`),
			"field_added /n", "field_removed /n breaks both",
		},
		"no others, in the words of a draft that has none for it": {
			beside(`"m":{}`, `"$schema":"http://json-schema.org/draft-07/schema#","unevaluatedProperties":false`),
			beside(`"m":{},`+number, `"$schema":"http://json-schema.org/draft-07/schema#","unevaluatedProperties":false`),
			"field_added /n", "field_removed /n breaks consumers",
		},
		"others that are not evaluated": {
			beside("", `"allOf":[{"$ref":"#/$defs/z"}],"$defs":{"z":{"properties":{"z":{}}}},"unevaluatedProperties":false`),
			beside(number, `"allOf":[{"$ref":"#/$defs/z"}],"$defs":{"z":{"properties":{"z":{}}}},"unevaluatedProperties":false`),
			"field_added /n", "field_removed /n breaks both",
		},
		"others that may be evaluated": {
			beside("", `"allOf":[{"properties":{"n":{}}}],"unevaluatedProperties":false`),
			beside(number, `"allOf":[{"properties":{"n":{}}}],"unevaluatedProperties":false`),
			"field_added /n breaks both", "field_removed /n breaks both",
		},
		"others that others may evaluate": {
			beside("", `"anyOf":[{"patternProperties":{"^n":{}}}],"unevaluatedProperties":false`),
			beside(number, `"anyOf":[{"patternProperties":{"^n":{}}}],"unevaluatedProperties":false`),
			"field_added /n breaks both", "field_removed /n breaks both",
		},
		"those of a pattern": {
			beside("", `"patternProperties":{"^n":{"type":["string","integer"]}},"additionalProperties":false`),
			beside(number, `"patternProperties":{"^n":{"type":["string","integer"]}},"additionalProperties":false`),
			"field_added /n breaks producers", "field_removed /n breaks consumers",
		},
		"those of a pattern of other names": {
			beside("", `"patternProperties":{"^m":{}},"additionalProperties":false`),
			beside(number, `"patternProperties":{"^m":{}},"additionalProperties":false`),
			"field_added /n", "field_removed /n breaks both",
		},
		"one that may not be there": {
			`{}`, `{"properties":{"n":false}}`,
			"field_added /n breaks producers", "field_removed /n breaks consumers",
		},
		"one that goes round": {
			`{"additionalProperties":{"$ref":"#"}}`, `{"properties":{"n":{"$ref":"#"}},"additionalProperties":{"$ref":"#"}}`,
			"field_added /*/n, field_added /n", "field_removed /*/n breaks consumers, field_removed /n breaks consumers",
		},
	})
}

// TestDiffOfDefaults: what a schema means without a keyword, and what a draft does not know.
func TestDiffOfDefaults(t *testing.T) {
	t.Parallel()
	const draft4 = `"$schema":"http://json-schema.org/draft-04/schema#"`
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#"`
	compareBothWays(t, map[string]schemaCase{
		"no element must be there": {
			`{"contains":{}}`, `{"contains":{},"minContains":0}`, "limit_widened breaks consumers",
			"limit_narrowed breaks producers",
		},
		"one element must be there": {`{"contains":{}}`, `{"contains":{},"minContains":1}`, "", ""},
		"no length":                 {`{}`, `{"minLength":0,"minItems":0,"minProperties":0}`, "", ""},
		"a value that two rules name": {
			`{"const":"a","enum":["a","b"]}`, `{"const":"a","enum":["b"]}`, "enum_narrowed breaks producers",
			"enum_widened breaks consumers",
		},
		"a value that one rule names": {`{"const":"a","enum":["a","b"]}`, `{"const":"a"}`, "", ""},
		"a draft without const": {
			`{` + draft4 + `,"enum":["a"]}`, `{` + draft4 + `,"const":"a"}`, "enum_widened breaks consumers",
			"enum_narrowed breaks producers",
		},
		"a draft without prefixItems": {
			`{` + draft7 + `,"items":[{"type":"string"}]}`, `{` + draft7 + `,"prefixItems":[{"type":"string"}]}`,
			"rule_changed breaks both", "rule_changed breaks both",
		},
	})
}
