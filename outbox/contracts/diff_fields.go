package contracts

import (
	"maps"
	"slices"
)

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
