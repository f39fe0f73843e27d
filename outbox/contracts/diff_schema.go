package contracts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// comparison goes through two schemas side by side.
type comparison struct {
	eventType string
	was, is   any // the whole schemas, for references
	// year is that of the draft. Up to draft 7 formats are rules, and remarks since.
	year    int
	seen    map[[2]string]bool // pairs of which one is a reference, which may go round
	depth   int                // of the place that is compared
	left    int                // parts that may still be looked at
	told    map[Side]int
	changes []Change
}

const (
	// mostChanges of one schema are told for each side: what breaks one is never lost behind what breaks nobody.
	mostChanges = 1000
	// deepestPlace and mostParts bound a comparison of schemas that refer to themselves in many ways.
	deepestPlace = 300
	mostParts    = 2_000_000
)

func compareSchemas(before, after Contract) []Change {
	was, errWas := decode(before.Schema)
	is, errIs := decode(after.Schema)
	c := &comparison{
		eventType: after.Type, was: was, is: is, year: yearOf(is), seen: map[[2]string]bool{}, left: mostParts,
		told: map[Side]int{},
	}
	if errWas != nil || errIs != nil {
		c.add("", "rule_changed", Both, "a schema cannot be read")
		return c.changes
	}
	if reflect.DeepEqual(was, is) {
		return nil
	}
	if before, after := draftOf(was), draftOf(is); before != after {
		c.add("", "draft_changed", Both, fmt.Sprintf("$schema was %q and is %q: the same words may mean another thing",
			before, after))
	}
	if plainWas, plainIs := rootRefs(was), rootRefs(is); !plainWas || !plainIs {
		c.add("", "rule_changed", Both, "parts of it have the same address, or a $schema of their own: compare it by hand")
	}
	c.schemas("", was, is)
	return c.changes
}

// draftOf is the draft of JSON Schema that a schema is written in; without a word it is the newest.
func draftOf(schema any) string {
	draft, _ := objectOf(schema)["$schema"].(string)
	return strings.TrimSuffix(cmp.Or(draft, "https://json-schema.org/draft/2020-12/schema"), "#")
}

func (c *comparison) add(field, kind string, breaks Side, text string) {
	if c.told[breaks]++; c.told[breaks] <= mostChanges {
		c.changes = append(c.changes, Change{Type: c.eventType, Kind: kind, Field: field, Breaks: breaks, Text: text})
	}
}

// direction tells for whom a set of allowed values has changed: what was allowed and is not any more, what is allowed
// and was not.
func direction(narrowed, widened bool) (suffix string, breaks Side) {
	switch {
	case narrowed && widened:
		return "changed", Both
	case narrowed:
		return "narrowed", Producers
	case widened:
		return "widened", Consumers
	default:
		return "", Nobody
	}
}

// schemas compares what one place of the payload may be.
func (c *comparison) schemas(field string, was, is any) {
	if c.same(was, is) {
		return
	}
	c.left--
	c.depth++
	defer func() { c.depth-- }()
	if c.left < 0 || c.depth > deepestPlace {
		c.add(field, "rule_changed", Both, "it goes too deep to be compared: compare it by hand")
		return
	}
	before, after := objectOf(was), objectOf(is)
	if before["$ref"] != nil || after["$ref"] != nil {
		var followed bool
		if before, after, followed = c.follow(before, after); !followed {
			c.add(field, "rule_changed", Both, "a reference has changed, or what it leads to: compare it by hand")
			return
		}
		if before == nil { // looked at already
			return
		}
	}
	c.types(field, before, after)
	c.values(field, before, after)
	c.fields(field, before, after)
	c.elements(field, before, after)
	c.limits(field, before, after)
	c.others(field, before, after)
}

// objectOf is a schema as an object: true and false are short for one.
func objectOf(schema any) map[string]any {
	switch schema := schema.(type) {
	case map[string]any:
		return schema
	case bool:
		if !schema {
			return map[string]any{"not": map[string]any{}}
		}
	}
	return map[string]any{}
}

// types compares the JSON types.
func (c *comparison) types(field string, was, is map[string]any) {
	before, after := typesOf(was), typesOf(is)
	suffix, breaks := direction(!subset(before, after), !subset(after, before))
	if suffix != "" {
		c.add(field, "type_"+suffix, breaks, fmt.Sprintf("was %s and is %s", typeWords(was), typeWords(is)))
	}
}

// everyType are the types of JSON. Every integer is a number, so that a number is two of them.
var everyType = []string{"array", "boolean", "fraction", "integer", "null", "object", "string"}

func typesOf(schema map[string]any) (types []string) {
	switch named := schema["type"].(type) {
	case string:
		types = []string{named}
	case []any:
		for _, one := range named {
			if name, is := one.(string); is {
				types = append(types, name)
			}
		}
	default:
		return everyType
	}
	if slices.Contains(types, "number") {
		types = append(types, "integer", "fraction")
	}
	return slices.DeleteFunc(types, func(name string) bool { return name == "number" })
}

func typeWords(schema map[string]any) string {
	if schema["type"] == nil {
		return "any type"
	}
	return words(schema["type"])
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(of, one) })
}

// values compares enum and const.
func (c *comparison) values(field string, was, is map[string]any) {
	before, listedBefore := c.valuesOf(was)
	after, listedAfter := c.valuesOf(is)
	if !listedBefore && !listedAfter {
		return
	}
	narrowed := listedAfter && (!listedBefore || !subset(before, after))
	widened := listedBefore && (!listedAfter || !subset(after, before))
	suffix, breaks := direction(narrowed, widened)
	if suffix == "" {
		return
	}
	text := "any value will do now"
	switch {
	case listedAfter && !listedBefore:
		text = "must be one of " + short(after)
	case listedAfter:
		text = "was one of " + short(before) + " and is one of " + short(after)
	}
	c.add(field, "enum_"+suffix, breaks, text)
}

// valuesOf are those that keep enum and const.
func (c *comparison) valuesOf(schema map[string]any) (values []string, listed bool) {
	list, listed := schema["enum"].([]any)
	for _, value := range list {
		values = append(values, words(value))
	}
	only, is := schema["const"]
	switch {
	case !is || c.year == 4: // which has no const
		return values, listed
	case listed && !slices.Contains(values, words(only)):
		return nil, true
	default:
		return []string{words(only)}, true
	}
}

// words is a piece of a schema as JSON writes it.
func words(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return string(text)
}

// short is a list that a line has room for.
func short(list []string) string {
	if len(list) > 10 {
		list = append(slices.Clone(list[:10]), "...")
	}
	return strings.Join(list, ", ")
}
