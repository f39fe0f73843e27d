package contracts

import (
	"maps"
	"regexp"
	"slices"
)

// fields compares the fields of an object.
func (c *comparison) fields(field string, was, is map[string]any) {
	before, after := objectOf(was["properties"]), objectOf(is["properties"])
	neededBefore, neededAfter := namesIn(was["required"]), namesIn(is["required"])
	for _, name := range slices.Sorted(maps.Keys(before)) {
		here := field + "/" + name
		now, stays := after[name]
		if stays {
			c.schemas(here, before[name], now)
		} else {
			c.removed(here, name, before[name], is)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, known := before[name]; !known {
			c.added(field+"/"+name, name, after[name], was)
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

// removed tells that a field has no name any more: now it is held to what other fields are.
func (c *comparison) removed(here, name string, field any, is map[string]any) {
	others, by := othersIn(c.is, is, name)
	switch {
	case by == unknownRule:
		c.add(here, "field_removed", Both, "nobody can tell which rules it keeps now: compare it by hand")
	case nothing(c.is, others):
		c.add(here, "field_removed", Both, "it is not known any more, and fields that are not known are rejected")
	case by == additionalRule && len(Breaking(c.tried(here, field, others), Producers)) > 0:
		c.add(here, "field_removed", Both, "it must keep the rules of other fields now")
	default:
		c.add(here, "field_removed", Consumers, "nothing is promised about it any more")
	}
}

// added tells that a field has a name now: before it was held to what other fields are.
func (c *comparison) added(here, name string, field any, was map[string]any) {
	others, by := othersIn(c.was, was, name)
	text := "of " + typeWords(objectOf(field))
	switch {
	case by == unknownRule:
		c.add(here, "field_added", Both, text+", and nobody can tell which rules it kept before: compare it by hand")
		return
	case nothing(c.was, others): // consumers let pass what they do not know
	case nothing(c.is, field):
		c.add(here, "field_added", Producers, "it may not be there")
		return
	case by == noRule: // a producer that sent one unasked has had no promise
	default:
		tried := c.tried(here, others, field)
		narrowed, widened := len(Breaking(tried, Producers)) > 0, len(Breaking(tried, Consumers)) > 0
		if _, breaks := direction(narrowed, widened && by != patternRule); breaks != Nobody { // the pattern's rules stay
			c.add(here, "field_added", breaks, text+", and before it kept the rules of other fields")
			return
		}
	}
	c.add(here, "field_added", Nobody, text)
}

// tried is what would be told of a change, which is not.
func (c *comparison) tried(here string, was, is any) []Change {
	changes, told, seen := c.changes, c.told, c.seen
	c.changes, c.told, c.seen = nil, map[Side]int{}, maps.Clone(seen)
	c.schemas(here, was, is)
	tried := c.changes
	c.changes, c.told, c.seen = changes, told, seen
	return tried
}

// The rules that a field keeps which has no name under properties.
type otherRule int

const (
	noRule         otherRule = iota
	patternRule              // of a pattern of names
	additionalRule           // of all other fields
	unknownRule
)

// othersIn is what a field may be that has no name under properties of a schema.
func othersIn(document any, schema map[string]any, name string) (others any, by otherRule) {
	patterns := objectOf(schema["patternProperties"])
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		names, err := regexp.Compile(pattern)
		if err != nil {
			return nil, unknownRule
		}
		if names.MatchString(name) {
			return patterns[pattern], patternRule
		}
	}
	others, by = schema["additionalProperties"], additionalRule
	if others == nil && yearOf(document) >= 2019 {
		others = schema["unevaluatedProperties"]
		if others != nil && evaluates(document, combined(schema), name, map[string]bool{}) {
			return nil, unknownRule
		}
	}
	if object, is := others.(map[string]any); others == nil || others == true || is && onlyRemarks(object) {
		return true, noRule
	}
	return others, by
}

func onlyRemarks(schema map[string]any) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(schema)), func(keyword string) bool {
		return !slices.Contains(remarks, keyword)
	})
}

// nothing tells that a schema rejects everything.
func nothing(document, schema any) bool {
	rules, followed := resolve(document, objectOf(schema))
	none, is := rules["not"].(map[string]any)
	return followed && (is && len(none) == 0 || rules["not"] == true)
}

// combined are the keywords under which other schemas are about the same fields.
func combined(schema map[string]any) map[string]any {
	only := map[string]any{}
	for _, keyword := range []string{
		"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "$ref", "$dynamicRef", "$recursiveRef",
	} {
		if value, has := schema[keyword]; has {
			only[keyword] = value
		}
	}
	return only
}

// evaluates tells whether a schema, or one that it combines, may be about a field of this name.
func evaluates(document, schema any, name string, met map[string]bool) bool {
	object := objectOf(schema)
	if _, named := objectOf(object["properties"])[name]; named {
		return true
	}
	for _, keyword := range []string{
		"patternProperties", "additionalProperties", "unevaluatedProperties", "$dynamicRef", "$recursiveRef",
	} {
		if object[keyword] != nil {
			return true
		}
	}
	var parts []any
	for keyword, value := range combined(object) {
		list, isList := value.([]any)
		ref, isRef := value.(string)
		switch {
		case isList:
			parts = append(parts, list...)
		case isRef && !met[ref]:
			met[ref] = true
			target, found := pointed(document, ref)
			if !found {
				return true
			}
			parts = append(parts, target)
		case keyword == "dependentSchemas":
			parts = slices.AppendSeq(parts, maps.Values(objectOf(value)))
		case !isRef:
			parts = append(parts, value)
		}
	}
	return slices.ContainsFunc(parts, func(part any) bool { return evaluates(document, part, name, met) })
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
