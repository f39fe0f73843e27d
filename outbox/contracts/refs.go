package contracts

import "slices"

// The keywords of JSON Schema that a walk must know: those under which names stand and not keywords, and those whose
// values are data.
var (
	namesUnder = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	dataUnder  = []string{"enum", "const", "default", "examples", "required", "dependentRequired"}
)

// MapRefs is a copy of a schema, as encoding/json decodes it, in which every reference is replaced. What only looks
// like one, because it is data or the name of a field, stays.
func MapRefs(schema any, replace func(ref string) (string, error)) (any, error) {
	switch schema := schema.(type) {
	case map[string]any:
		mapped := make(map[string]any, len(schema))
		for key, value := range schema {
			changed, err := mapKeyword(key, value, replace)
			if err != nil {
				return nil, err
			}
			mapped[key] = changed
		}
		return mapped, nil
	case []any:
		mapped := make([]any, 0, len(schema))
		for _, value := range schema {
			changed, err := MapRefs(value, replace)
			if err != nil {
				return nil, err
			}
			mapped = append(mapped, changed)
		}
		return mapped, nil
	default:
		return schema, nil
	}
}

func mapKeyword(key string, value any, replace func(ref string) (string, error)) (any, error) {
	if ref, is := value.(string); is && key == "$ref" {
		return replace(ref)
	}
	if slices.Contains(dataUnder, key) {
		return value, nil
	}
	named, is := value.(map[string]any)
	if !is || !slices.Contains(namesUnder, key) {
		return MapRefs(value, replace)
	}
	mapped := make(map[string]any, len(named))
	for name, schema := range named {
		changed, err := MapRefs(schema, replace)
		if err != nil {
			return nil, err
		}
		mapped[name] = changed
	}
	return mapped, nil
}
