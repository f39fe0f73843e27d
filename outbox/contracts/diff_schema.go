package contracts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// comparison goes through two schemas side by side.
type comparison struct {
	eventType string
	was, is   any // the whole schemas, for references
	// formats tells whether formats are rules: up to draft 7 they are, and remarks since.
	formats bool
	seen    map[[2]string]bool // pairs of references, which may go round
	changes []Change
}

// mostChanges of one schema are told.
const mostChanges = 1000

func compareSchemas(before, after Contract) []Change {
	was, errWas := decode(before.Schema)
	is, errIs := decode(after.Schema)
	c := &comparison{eventType: after.Type, was: was, is: is, seen: map[[2]string]bool{}}
	if errWas != nil || errIs != nil {
		c.add("", "rule_changed", Both, "a schema cannot be read")
		return c.changes
	}
	c.formats = strings.Contains(draftOf(is), "/draft-0")
	if before, after := draftOf(was), draftOf(is); before != after {
		c.add("", "draft_changed", Both, fmt.Sprintf("$schema was %q and is %q: the same words may mean another thing",
			before, after))
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
	if len(c.changes) < mostChanges {
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

// same tells whether two schemas are the same, with all that they refer to.
func (c *comparison) same(was, is any) bool {
	met := map[string]bool{}
	var look func(was, is any) bool
	look = func(was, is any) bool {
		equal := reflect.DeepEqual(was, is)
		if !equal {
			return false
		}
		_, _ = MapRefs(was, func(ref string) (string, error) {
			if equal && !met[ref] {
				met[ref] = true
				before, known := pointed(c.was, ref)
				after, stays := pointed(c.is, ref)
				equal = known == stays && look(before, after) // what is elsewhere is by its address
			}
			return ref, nil
		})
		return equal
	}
	return look(was, is)
}

// follow replaces references by what they refer to, on both sides. A pair that was met before is not followed again:
// then there are no schemas, though it could be followed.
func (c *comparison) follow(before, after map[string]any) (was, is map[string]any, followed bool) {
	pair := [2]string{refOf(before), refOf(after)}
	was, okWas := resolve(c.was, before)
	is, okIs := resolve(c.is, after)
	if !okWas || !okIs {
		return before, after, false
	}
	if pair[0] != "" && pair[1] != "" {
		if c.seen[pair] {
			return nil, nil, true
		}
		c.seen[pair] = true
	}
	return was, is, true
}

func refOf(schema map[string]any) string {
	ref, _ := schema["$ref"].(string)
	return ref
}

// resolve is a schema, or what its reference leads to within the document. A reference with rules of its own beside it
// is none that can be followed.
func resolve(document any, schema map[string]any) (map[string]any, bool) {
	for range 100 { // references to references
		ref, is := schema["$ref"].(string)
		if !is {
			return schema, schema["$ref"] == nil
		}
		for keyword := range schema {
			if keyword != "$ref" && !slices.Contains(remarks, keyword) && !slices.Contains(containers, keyword) {
				return nil, false
			}
		}
		target, found := pointed(document, ref)
		if !found {
			return nil, false
		}
		schema = objectOf(target)
	}
	return nil, false
}

// pointed is what a JSON pointer in a fragment leads to.
func pointed(document any, ref string) (any, bool) {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		object, is := document.(map[string]any)
		if !is {
			return nil, false
		}
		if document, is = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]; !is {
			return nil, false
		}
	}
	return document, true
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
	before, listedBefore := valuesOf(was)
	after, listedAfter := valuesOf(is)
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

func valuesOf(schema map[string]any) (values []string, listed bool) {
	if only, is := schema["const"]; is {
		return []string{words(only)}, true
	}
	list, listed := schema["enum"].([]any)
	for _, value := range list {
		values = append(values, words(value))
	}
	return values, listed
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

// fields compares the fields of an object.
func (c *comparison) fields(field string, was, is map[string]any) {
	before, after := objectOf(was["properties"]), objectOf(is["properties"])
	neededBefore, neededAfter := namesIn(was["required"]), namesIn(is["required"])
	for _, name := range slices.Sorted(maps.Keys(before)) {
		here := field + "/" + name
		now, stays := after[name]
		switch {
		case stays:
			c.schemas(here, before[name], now)
		case closed(is):
			c.add(here, "field_removed", Both, "it is not known any more, and fields that are not known are rejected")
		default:
			c.add(here, "field_removed", Consumers, "nothing is promised about it any more")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[name]; !known {
			c.add(field+"/"+name, "field_added", Nobody, "of "+typeWords(objectOf(after[name])))
		}
	}
	for _, name := range neededAfter {
		if !slices.Contains(neededBefore, name) {
			c.add(field+"/"+name, "field_required", Producers, "it may no longer be missing")
		}
	}
	for _, name := range neededBefore {
		_, named := before[name]
		_, stays := after[name]
		if !slices.Contains(neededAfter, name) && (stays || !named) { // one that was removed is told
			c.add(field+"/"+name, "field_optional", Consumers, "it may be missing now")
		}
	}
	c.additional(field, was, is)
}

func namesIn(list any) (names []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if name, is := item.(string); is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func closed(schema map[string]any) bool { return schema["additionalProperties"] == false }

// additional compares what fields may be that have no name in the schema.
func (c *comparison) additional(field string, was, is map[string]any) {
	before, after := was["additionalProperties"], is["additionalProperties"]
	switch {
	case closed(was) && closed(is):
	case closed(is):
		c.add(field, "closed", Producers, "fields that are not known are rejected now")
	case closed(was): // consumers let pass what they do not know
		c.add(field, "opened", Nobody, "fields that are not known go along now")
	default:
		c.schemas(field+"/*", orTrue(before), orTrue(after))
	}
}

// orTrue is a schema that may be missing: anything will do then.
func orTrue(schema any) any {
	if schema == nil {
		return true
	}
	return schema
}
