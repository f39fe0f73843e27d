package contracts

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
)

// The keywords of JSON Schema by what a comparison does with them.
var (
	lowest  = []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"}
	highest = []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"}
	// patterns are rules of which nobody knows which one is the stricter.
	patterns = []string{"pattern", "multipleOf", "contentEncoding", "contentMediaType"}
	// containers hold what others refer to.
	containers = []string{"$defs", "definitions"}
	// compared are the keywords that have a function of their own.
	compared = []string{
		"$ref", "$schema", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems",
		"uniqueItems", "format",
	}
	// rules are those that are compared as a whole: what changes in them may break anybody.
	rules = []string{
		"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains", "propertyNames", "patternProperties",
		"dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
		"additionalItems", "$dynamicRef", "$recursiveRef",
	}
	// remarks say nothing about what is allowed.
	remarks = []string{
		"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$id", "$anchor",
		"$schema",
	}
)

// elements compares what an array holds.
func (c *comparison) elements(field string, was, is map[string]any) {
	keyword := "prefixItems"
	if c.year <= 2019 {
		keyword = "items"
	}
	tuple := func(schema map[string]any) []any {
		list, _ := schema[keyword].([]any)
		return list
	}
	before, after := tuple(was), tuple(is)
	if len(before) != len(after) {
		c.add(field, "rule_changed", Both, fmt.Sprintf("had rules for the first %d elements and has for %d", len(before),
			len(after)))
		return
	}
	for i := range before {
		c.schemas(fmt.Sprintf("%s/%d", field, i), before[i], after[i])
	}
	rest := func(schema map[string]any) any {
		if _, list := schema["items"].([]any); list {
			return true
		}
		return orTrue(schema["items"])
	}
	c.schemas(field+"/*", rest(was), rest(is))
	if unique, now := was["uniqueItems"] == true, is["uniqueItems"] == true; unique != now {
		suffix, breaks := direction(now, unique)
		c.add(field, "limit_"+suffix, breaks, fmt.Sprintf("uniqueItems was %t and is %t", unique, now))
	}
}

// limits compares lengths, counts and sizes.
func (c *comparison) limits(field string, was, is map[string]any) {
	for _, keyword := range slices.Concat(lowest, highest) {
		before, after := was[keyword], is[keyword]
		if before == nil && after != nil || after == nil && before != nil {
			before, after = orImplied(keyword, before), orImplied(keyword, after)
		}
		order, numbers := orderOf(before, after)
		if numbers && order == 0 || reflect.DeepEqual(before, after) {
			continue
		}
		raised := order < 0
		narrowed := raised == slices.Contains(lowest, keyword)
		switch {
		case before == nil:
			narrowed = true
		case after == nil:
			narrowed = false
		case !numbers:
			c.add(field, "rule_changed", Both, fmt.Sprintf("%s was %s and is %s", keyword, words(before), words(after)))
			continue
		}
		suffix, breaks := direction(narrowed, !narrowed)
		c.add(field, "limit_"+suffix, breaks, changeOf(keyword, was[keyword], is[keyword]))
	}
	keywords := patterns
	if c.year < 2019 {
		keywords = append(slices.Clone(keywords), "format")
	}
	for _, keyword := range keywords {
		if before, after := was[keyword], is[keyword]; !reflect.DeepEqual(before, after) {
			suffix, breaks := direction(after != nil, before != nil)
			c.add(field, "limit_"+suffix, breaks, changeOf(keyword, before, after))
		}
	}
}

// orImplied is a limit, or the one that a schema means without it.
func orImplied(keyword string, limit any) any {
	implied := map[string]json.Number{"minLength": "0", "minItems": "0", "minProperties": "0", "minContains": "1"}
	if number, is := implied[keyword]; is && limit == nil {
		return number
	}
	return limit
}

func changeOf(keyword string, before, after any) string {
	switch {
	case before == nil:
		return keyword + " is " + words(after) + " now"
	case after == nil:
		return keyword + " was " + words(before) + " and is gone"
	default:
		return fmt.Sprintf("%s was %s and is %s", keyword, words(before), words(after))
	}
}

// orderOf compares two numbers.
func orderOf(before, after any) (order int, numbers bool) {
	one, isOne := numberOf(before)
	other, isOther := numberOf(after)
	if !isOne || !isOther {
		return 0, false
	}
	return one.Cmp(other), true
}

func numberOf(value any) (*big.Rat, bool) {
	number, is := value.(json.Number)
	if !is || len(number) > 40 { // an exponent can make a short text a long number
		return nil, false
	}
	if float, err := number.Float64(); err != nil || float > 1e18 || float < -1e18 {
		return nil, false
	}
	return new(big.Rat).SetString(number.String())
}

// others compares what is left: rules as a whole, and remarks.
func (c *comparison) others(field string, was, is map[string]any) {
	keywords := slices.Collect(maps.Keys(was))
	keywords = slices.AppendSeq(keywords, maps.Keys(is))
	slices.Sort(keywords)
	for _, keyword := range slices.Compact(keywords) {
		switch {
		case slices.ContainsFunc([][]string{lowest, highest, patterns, containers, compared}, func(group []string) bool {
			return slices.Contains(group, keyword)
		}):
			if keyword == "format" && c.year >= 2019 && !reflect.DeepEqual(was[keyword], is[keyword]) {
				c.add(field, "remark_changed", Nobody, changeOf(keyword, was[keyword], is[keyword]))
			}
		case c.same(map[string]any{keyword: was[keyword]}, map[string]any{keyword: is[keyword]}):
		case slices.Contains(rules, keyword):
			c.add(field, "rule_changed", Both, keyword+" has changed, or what it refers to: compare it by hand")
		default:
			c.add(field, "remark_changed", Nobody, keyword+" has changed")
		}
	}
}
