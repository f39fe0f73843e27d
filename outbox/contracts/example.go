package contracts

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Schemas may refer to themselves, once or many times: deepest is how deep an example goes with fields that may be
// missing, and mostValues how many values it has. Behind that it has no more than it must.
const (
	deepest    = 8
	mostValues = 1000
)

// example is one that is being made.
type example struct {
	document any // the whole schema, for references
	left     int // values that it may still get
}

// Example is data of the payload, made of the schema: each field that it names, with the value that it prescribes or
// proposes, or one of the right type. Where a schema asks for more than that (a pattern, a combination) the example may
// not keep it: let the registry check it.
func (c Contract) Example() json.RawMessage {
	schema, err := decode(c.Schema)
	if err != nil {
		return json.RawMessage("{}")
	}
	rootRefs(schema) // it need not be plain: the registry checks what comes of it
	text, err := encode((&example{schema, mostValues}).of(schema, "", 0))
	if err != nil || !strings.HasPrefix(string(text), "{") {
		return json.RawMessage("{}")
	}
	return text
}

// of is a value that keeps a schema. name is that of the field that it is for.
func (e *example) of(schema any, name string, depth int) any {
	e.left--
	rules, _ := resolve(e.document, objectOf(schema))
	return e.value(rules, name, depth)
}

func (e *example) value(schema map[string]any, name string, depth int) any {
	for _, keyword := range []string{"const", "default"} {
		if value, given := schema[keyword]; given {
			return value
		}
	}
	for _, keyword := range []string{"examples", "enum"} {
		if values, given := schema[keyword].([]any); given && len(values) > 0 {
			return values[0]
		}
	}
	switch kindOf(schema) {
	case "object":
		return e.object(schema, depth)
	case "array":
		return e.array(schema, name, depth)
	case "integer", "number":
		return exampleNumber(schema)
	case "boolean":
		return false
	case "null":
		return nil
	default:
		return exampleText(schema, name)
	}
}

// kindOf is the first type that is not null; where none is named, what the other keywords are about.
func kindOf(schema map[string]any) string {
	if schema["type"] != nil {
		for _, name := range []string{"object", "array", "string", "integer", "boolean"} {
			if slices.Contains(typesOf(schema), name) {
				return name
			}
		}
		return "null"
	}
	switch {
	case schema["properties"] != nil || schema["required"] != nil:
		return "object"
	case schema["items"] != nil:
		return "array"
	case schema["minimum"] != nil || schema["maximum"] != nil:
		return "number"
	}
	return "string"
}

func (e *example) object(schema map[string]any, depth int) any {
	fields := objectOf(schema["properties"])
	needed := namesIn(schema["required"])
	made := map[string]any{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(
		slices.Clone(needed), maps.Keys(fields))))) {
		if e.left > 0 && (depth < deepest || slices.Contains(needed, name) && depth < 2*deepest) {
			made[name] = e.of(fields[name], name, depth+1)
		}
	}
	return made
}

func (e *example) array(schema map[string]any, name string, depth int) any {
	least := 1
	if number, is := numberOf(schema["minItems"]); is && number.IsInt() {
		least = int(min(number.Num().Int64(), 10))
	}
	made := []any{}
	for range least {
		if e.left > 0 && depth < 2*deepest {
			made = append(made, e.of(schema["items"], name, depth+1))
		}
	}
	return made
}

// exampleNumber is 1, or the nearest number that keeps to the limits.
func exampleNumber(schema map[string]any) any {
	one, _ := numberOf(json.Number("1"))
	for _, keyword := range []string{"minimum", "maximum", "multipleOf"} {
		limit, given := numberOf(schema[keyword])
		if given && (keyword == "minimum" && limit.Cmp(one) > 0 || keyword == "maximum" && limit.Cmp(one) < 0 ||
			keyword == "multipleOf") {
			return schema[keyword]
		}
	}
	if limit, given := numberOf(schema["exclusiveMinimum"]); given && limit.Cmp(one) >= 0 {
		return json.Number(limit.Add(limit, one).FloatString(0))
	}
	return json.Number("1")
}

func exampleText(schema map[string]any, name string) any {
	format, _ := schema["format"].(string)
	formats := map[string]string{
		"uuid": "00000000-0000-7000-8000-000000000000", "date-time": "2026-01-31T12:00:00Z", "date": "2026-01-31",
		"time": "12:00:00Z", "email": "name@example.com", "uri": "https://example.com/", "duration": "PT1H",
		"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com",
	}
	text, known := formats[format]
	if !known {
		text = cmp.Or(name, "text")
	}
	if least, is := numberOf(schema["minLength"]); is && least.IsInt() {
		if missing := min(int(least.Num().Int64()), 1000) - utf8.RuneCountInString(text); missing > 0 {
			text += strings.Repeat(".", missing)
		}
	}
	if most, is := numberOf(schema["maxLength"]); is && most.IsInt() && !known {
		characters := []rune(text)
		text = string(characters[:max(0, min(len(characters), int(most.Num().Int64())))])
	}
	return text
}
