package registryfile_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
)

// TestContractsAreReadBack: the document of a registry is a registry's file with the same verdicts and needs no other
// file; and it is the same document when it is read and written again.
func TestContractsAreReadBack(t *testing.T) {
	t.Parallel()
	const trees = `
  - type: tree_grown
    aggregate: tree
    schema: schemas/tree.json
  - type: old_seen
    aggregate: old
    schema: schemas/old.json
`
	name := folder(t, map[string]string{
		"registry.yaml": contracts + trees,
		"schemas/line.json": `{"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"line": {"type": ` +
			`"object", "required": ["qty"], "properties": {"qty": {"$ref": "#/$defs/count"}}}, "count": {"type": "integer", ` +
			`"minimum": 1}}}`,
		"schemas/seen.yaml": "type: object\nproperties:\n  by: {type: string, pattern: '^[a-z]+$'}\n  line: {$ref: " +
			"'line.json#/$defs/line'}\n",
		// They refer to each other, and to themselves; what is data is no reference.
		"schemas/tree.json": `{"type": "object", "required": ["leaf"], "properties": {"leaf": {"$ref": "leaf.json"}, ` +
			`"trees": {"items": {"$ref": "#"}}, "$ref": {"type": "string"}, "note": {"default": {"$ref": "none.json"}}}}`,
		// By their anchors, as draft 7 has them.
		"schemas/old.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": ` +
			`"older.json#x"}, "b": {"$ref": "#y"}}, "definitions": {"z": {"$id": "#y", "type": "string"}}}`,
		"schemas/older.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a/b": {"$id": "#x", ` +
			`"type": "array", "items": {"$ref": "#z"}}, "c": {"$id": "#z", "type": "integer"}}}`,
		"schemas/leaf.json": `{"type": "object", "properties": {"of": {"$ref": "tree.json"}, "green": {"type": "boolean"}}}`,
	})
	options := registryfile.Options{DefaultTopic: "domain"}
	read := func(name string) (*registryfile.File, string) {
		t.Helper()
		file, err := registryfile.Load(name, options)
		if err != nil {
			t.Fatal(err)
		}
		document, err := file.Contracts()
		if err != nil {
			t.Fatal(err)
		}
		text, err := document.JSON()
		if err != nil {
			t.Fatal(err)
		}
		return file, string(text)
	}
	before, text := read(name)
	after, again := read(folder(t, map[string]string{"registry.yaml": text}))
	if text != again || len(after.Files) != 1 {
		t.Errorf("read from %v it is another document:\n%s\n%s", after.Files, text, again)
	}
	for _, event := range [][3]string{
		{"order_created", "vendor_order", `{"orderId": "1", "lines": [{"qty": 1}]}`},
		{"order_created", "vendor_order", `{"orderId": "1", "lines": [{"qty": 0}]}`},
		{"order_created", "vendor_order", `{"orderId": "1", "lines": [{}]}`},
		{"order_seen", "vendor_order", `{"line": {"qty": 2}, "by": "A"}`},
		{"order_seen", "vendor_order", `{"line": {"qty": 2}, "by": "a"}`},
		{"tree_grown", "tree", `{"leaf": {"green": true}, "$ref": "x"}`},
		{"tree_grown", "tree", `{"leaf": {"green": 1}}`},
		{"tree_grown", "tree", `{"leaf": {"of": {"leaf": {"green": 1}}}}`},
		{"tree_grown", "tree", `{"leaf": {}, "trees": [{}]}`},
		{"tree_grown", "tree", `{"leaf": {}, "trees": [{"leaf": {"of": {"leaf": {}}}}]}`},
		{"old_seen", "old", `{"a": [1], "b": "x"}`},
		{"old_seen", "old", `{"a": 1}`},
		{"old_seen", "old", `{"a": ["x"]}`},
		{"old_seen", "old", `{"b": 1}`},
		{"anything", "thing", `{"a": 1}`},
	} {
		row := stored(t, event[0], event[1], event[2])
		_, was := before.Registry.Check(row)
		_, is := after.Registry.Check(row)
		if (was == nil) != (is == nil) || was != nil && was.Error() != is.Error() {
			t.Errorf("%s: %v before, and %v after", event[2], was, is)
		}
	}
}

// TestContractsThatCannotBeOneDocument: where a schema of several files would mean something else as one, nothing is
// made of it, and what is to be done is said.
func TestContractsThatCannotBeOneDocument(t *testing.T) {
	t.Parallel()
	const other, older = `{"type": "object"}`, `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`
	for name, c := range map[string]struct{ a, b, want string }{
		"an $id and two files": {`{"$id": "registry:///schemas/a.json", "$ref": "b.json"}`, other, "put it into one"},
		"an $id":               {`{"$id": "https://example.com/a.json", "type": "object"}`, other, ""},
		"the $id of a part": {
			`{"items": {"$id": "https://example.com/a.json", "$ref": "#/$defs/x", "$defs": {"x": {}}}}`, other, "",
		},
		"the $id of a part, from which another file is told": {
			`{"items": {"$id": "sub/x.json", "$ref": "../b.json"}}`, other, "put it into one",
		},
		"the $id of a part of the second file": {
			`{"$ref": "b.json"}`, `{"items": {"$id": "https://example.com/a.json"}}`, "put it into one",
		},
		"an older draft": {
			`{"$ref": "b.json"}`, older, `schemas/b.json is written in draft "http://json-schema.org/draft-07/schema" and`,
		},
		"a newer draft": {
			strings.Replace(older, `"type": "object"`, `"allOf": [{"$ref": "b.json"}]`, 1), other, "give both the same $schema",
		},
		"one older draft": {strings.Replace(older, `"type": "object"`, `"allOf": [{"$ref": "b.json"}]`, 1), older, ""},
		"an anchor in both": {
			`{"$anchor": "x", "$ref": "b.json"}`, `{"$anchor": "x"}`, `"x" is in schemas/b.json and in schemas/a.json`,
		},
		"a dynamic reference": {
			`{"$ref": "b.json"}`, `{"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}`, "$dynamicRef",
		},
		"a dynamic reference in one file": {`{"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}`, other, ""},
	} {
		file, err := registryfile.Load(folder(t, map[string]string{
			"registry.yaml":  "contracts:\n  - {type: a, aggregate: b, topic: c, schema: schemas/a.json}\n",
			"schemas/a.json": c.a, "schemas/b.json": c.b,
		}), registryfile.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = file.Contracts()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadBack: what a document says is what is read, or it is refused.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"maximum": 1e400, "minimum": -1E+400, "enum": [1.50, -0, 123456789012345678901234567890, ` +
			`"1e400", "~", "yes"]}`: "",
		`{"const": "\u007f\u0080\u0085\u2028\ufeff\ufffe\uffff \\u0085 \ud83d\ude00 \/"}`: "",
		`{"properties": {"` + strings.Repeat("k", 1500) + `": {}}}`:                       "could not be read",
		`{"const": 1e4000}`: "read as another one",
	} {
		file, err := registryfile.Load(folder(t, map[string]string{
			"registry.yaml": "contracts:\n  - {type: a, aggregate: b, topic: c, schema: a.json}\n", "a.json": schema,
		}), registryfile.Options{})
		if err != nil {
			t.Errorf("%.80s: %v", schema, err)
			continue
		}
		document, err := file.Contracts()
		if err != nil {
			t.Fatal(err)
		}
		err = registryfile.ReadBack(document)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", schema, err)
		}
	}
}
