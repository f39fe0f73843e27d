package contracts

import (
	"reflect"
	"slices"
)

// same tells whether two schemas are the same, with all that they refer to. Where a reference leads to that cannot be
// followed, or that depends on the way there ($dynamicRef), nobody knows: the documents as a whole are not the same.
func (c *comparison) same(was, is any) bool {
	met := map[string]bool{}
	var look func(was, is any) bool
	look = func(was, is any) bool {
		if !reflect.DeepEqual(was, is) {
			return false
		}
		equal := true
		walk(was, "", func(part map[string]any, _ string) {
			c.left--
			ref, is := part["$ref"].(string)
			switch {
			case !equal:
			case part["$dynamicRef"] != nil || part["$recursiveRef"] != nil || c.left < 0:
				equal = false
			case is && !met[ref] && !ofDraft(ref):
				met[ref] = true
				before, known := pointed(c.was, ref)
				after, stays := pointed(c.is, ref)
				equal = known && stays && look(before, after)
			}
		})
		return equal
	}
	return look(was, is)
}

// follow replaces references by what they refer to, on both sides. A pair that was met before is not followed again:
// then there are no schemas, though it could be followed.
func (c *comparison) follow(before, after map[string]any) (was, is map[string]any, followed bool) {
	pair := [2]string{pairOf(before), pairOf(after)}
	was, okWas := resolve(c.was, before)
	is, okIs := resolve(c.is, after)
	if !okWas || !okIs {
		return before, after, false
	}
	if c.seen[pair] {
		return nil, nil, true
	}
	c.seen[pair] = true
	return was, is, true
}

// pairOf is what tells one side of a pair: its reference, or what it is itself. Where one side goes round and the other
// does not, the other one comes back as well.
func pairOf(schema map[string]any) string {
	if ref, is := schema["$ref"].(string); is {
		return ref
	}
	return words(schema)
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
