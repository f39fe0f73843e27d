package contracts

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The keywords of JSON Schema that a walk must know: those under which names stand and not keywords, and those whose
// values are data.
var (
	namesUnder = []string{
		"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
	}
	dataUnder = []string{"enum", "const", "default", "examples", "required", "dependentRequired"}
)

// walk visits every part of a schema that may be a schema itself, from the outside in, with the pointer to it. What
// only looks like one, because it is data or holds the names of fields, is not visited.
func walk(schema any, at string, visit func(part map[string]any, at string)) {
	switch schema := schema.(type) {
	case []any:
		for i, part := range schema {
			walk(part, at+"/"+strconv.Itoa(i), visit)
		}
	case map[string]any:
		visit(schema, at)
		for key, value := range schema {
			here := at + "/" + tokenOf(key)
			named, is := value.(map[string]any)
			switch {
			case slices.Contains(dataUnder, key):
			case is && slices.Contains(namesUnder, key):
				for name, part := range named {
					walk(part, here+"/"+tokenOf(name), visit)
				}
			default:
				walk(value, here, visit)
			}
		}
	}
}

// tokenOf is a name as it stands in a pointer.
func tokenOf(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// MapRefs is a copy of a schema, as encoding/json decodes it, in which every reference is replaced. What only looks
// like one, because it is data or the name of a field, stays.
func MapRefs(schema any, replace func(ref string) (string, error)) (any, error) {
	mapped := clone(schema)
	var failed error
	walk(mapped, "", func(part map[string]any, _ string) {
		if ref, is := part["$ref"].(string); is && failed == nil {
			part["$ref"], failed = replace(ref)
		}
	})
	if failed != nil {
		return nil, failed
	}
	return mapped, nil
}

// clone is a copy down to the values that never change.
func clone(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		copied := maps.Clone(schema)
		for key, value := range copied {
			copied[key] = clone(value)
		}
		return copied
	case []any:
		copied := slices.Clone(schema)
		for i, value := range copied {
			copied[i] = clone(value)
		}
		return copied
	default:
		return schema
	}
}
