package contracts

import (
	"net/url"
	"strconv"
	"strings"
)

// addresses are the names that the parts of a schema have: where an $id or an anchor leads to depends on the $ids
// around it, and a pointer from the root does not.
type addresses struct {
	year    int                 // of the draft
	bases   map[string]*url.URL // of the parts that have an $id, by pointer
	places  map[string]string   // pointers, by address
	ids     bool                // a part has an $id
	anchors map[string]string   // pointers, by name
	plain   bool                // no address is there twice, and no part is of another draft
}

// rootRefs replaces every reference within a schema by a pointer from its root. What leads elsewhere, or nowhere,
// stays. plain tells that nothing in it can be understood in two ways.
func rootRefs(schema any) (plain bool) {
	a := addressesOf(schema)
	walk(schema, "", func(part map[string]any, at string) {
		if ref, is := part["$ref"].(string); is {
			if pointer, found := a.pointer(ref, at); found {
				part["$ref"] = "#" + (&url.URL{Fragment: pointer}).EscapedFragment()
			}
		}
	})
	return a.plain
}

func addressesOf(schema any) *addresses {
	a := &addresses{
		year: yearOf(schema), bases: map[string]*url.URL{}, places: map[string]string{}, anchors: map[string]string{},
		plain: true,
	}
	a.name(&url.URL{Scheme: "schema", Path: "/root.json"}, "") // nothing else is called so
	walk(schema, "", func(part map[string]any, at string) {
		if part["$schema"] != nil && draftOf(part) != draftOf(schema) {
			a.plain = false
		}
		a.note(part, at)
	})
	return a
}

// Names are what a schema calls itself and its parts, and what it calls others.
type Names struct {
	// Draft is the draft of JSON Schema that it is written in.
	Draft string
	// IDs tells that it or a part of it has an address of its own, from which references within are told.
	IDs bool
	// Anchors are pointers to parts, by their names. Without IDs each of them is there once.
	Anchors map[string]string
	// Outside are the references that lead out of it, but for those to JSON Schema itself.
	Outside []string
	// Dynamic tells that it has references ($dynamicRef, $recursiveRef) that mean another thing within another schema.
	Dynamic bool
}

// NamesOf are those of a schema, as encoding/json decodes it.
func NamesOf(schema any) Names {
	a := addressesOf(schema)
	names := Names{Draft: draftOf(schema), IDs: a.ids, Anchors: a.anchors}
	walk(schema, "", func(part map[string]any, at string) {
		names.Dynamic = names.Dynamic || part["$dynamicRef"] != nil || part["$recursiveRef"] != nil
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			ref, is := part[keyword].(string)
			if _, found := a.pointer(ref, at); is && !found && !ofDraft(ref) {
				names.Outside = append(names.Outside, ref)
			}
		}
	})
	return names
}

// yearOf is the draft of a schema: 4, 6 and 7 were called by number.
func yearOf(schema any) int {
	draft := draftOf(schema)
	for name, year := range map[string]int{"draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 2019} {
		if strings.Contains(draft, "/"+name+"/") {
			return year
		}
	}
	return 2020
}

// note remembers how a part is called.
func (a *addresses) note(part map[string]any, at string) {
	if a.year < 2019 && part["$ref"] != nil { // there nothing beside a reference means anything
		return
	}
	keyword := "$id"
	if a.year == 4 {
		keyword = "id"
	}
	if id, is := part[keyword].(string); is {
		address, err := a.base(at).Parse(id)
		if err != nil {
			a.plain = false
			return
		}
		anchor := cutFragment(address)
		if !strings.HasPrefix(id, "#") {
			a.ids = true
			a.name(address, at)
		}
		if anchor != "" && !strings.HasPrefix(anchor, "/") {
			a.anchor(address, anchor, at)
		}
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor, is := part[keyword].(string); is {
			a.anchor(a.base(at), anchor, at)
		}
	}
}

func (a *addresses) anchor(base *url.URL, anchor, at string) {
	a.anchors[anchor] = at
	a.put(base.String()+"#"+anchor, at)
}

// name gives a part an address of its own, from which those within it are told.
func (a *addresses) name(address *url.URL, at string) {
	a.bases[at] = address
	a.put(address.String(), at)
}

func (a *addresses) put(address, at string) {
	if other, taken := a.places[address]; taken && other != at {
		a.plain = false
	}
	a.places[address] = at
}

// base is the address from which those in a part are told: that of the nearest part around it that has one.
func (a *addresses) base(at string) *url.URL {
	for {
		if base, has := a.bases[at]; has || at == "" {
			return base
		}
		at = at[:strings.LastIndexByte(at, '/')]
	}
}

// pointer is where a reference leads to, from the root.
func (a *addresses) pointer(ref, at string) (pointer string, found bool) {
	to, err := a.base(at).Parse(ref)
	if err != nil {
		return "", false
	}
	fragment := cutFragment(to)
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		pointer, found = a.places[to.String()+"#"+fragment]
		return pointer, found
	}
	start, found := a.places[to.String()]
	return start + fragment, found
}

// cutFragment takes the fragment from an address.
func cutFragment(address *url.URL) (fragment string) {
	fragment = address.Fragment
	address.Fragment, address.RawFragment = "", ""
	return fragment
}

// pointed is what a JSON pointer in a fragment leads to.
func pointed(document any, ref string) (any, bool) {
	escaped, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(escaped)
	if !local || err != nil || pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch parent := document.(type) {
		case map[string]any:
			child, is := parent[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
			if !is {
				return nil, false
			}
			document = child
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) || strconv.Itoa(i) != token {
				return nil, false
			}
			document = parent[i]
		default:
			return nil, false
		}
	}
	return document, true
}

// ofDraft tells that a reference leads to a schema of JSON Schema itself, which every reader has.
func ofDraft(ref string) bool {
	return strings.HasPrefix(ref, "http://json-schema.org/") || strings.HasPrefix(ref, "https://json-schema.org/")
}
