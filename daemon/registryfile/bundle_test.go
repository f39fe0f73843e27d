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

// TestContractsThatCannotBeOneDocument: a schema with an address of its own gives its references another meaning.
func TestContractsThatCannotBeOneDocument(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"two files": `{"$id": "registry:///schemas/a.json", "$ref": "b.json"}`,
		"one":       `{"$id": "https://example.com/a.json", "type": "object"}`,
	} {
		file, err := registryfile.Load(folder(t, map[string]string{
			"registry.yaml":  "contracts:\n  - {type: a, aggregate: b, topic: c, schema: schemas/a.json}\n",
			"schemas/a.json": schema, "schemas/b.json": `{"type": "object"}`,
		}), registryfile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Contracts()
		if fails := name == "two files"; (err != nil) != fails || fails && !strings.Contains(err.Error(), "put it into one") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
