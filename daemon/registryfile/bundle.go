package registryfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// Contracts is the registry as one document, with every schema whole in itself: what a schema refers to in other files
// comes along, under its $defs. [Load] reads the document's JSON as it reads the file. It fails where a schema would
// mean something else there than in its files: they are of two drafts, or have an $id or a $dynamicRef, or one anchor
// twice.
func (f *File) Contracts() (contracts.Document, error) {
	schemas := map[string]json.RawMessage{}
	for _, eventType := range slices.Sorted(maps.Keys(f.addresses)) {
		schema, err := f.schemas.bundle(f.addresses[eventType])
		if err != nil {
			return contracts.Document{}, fmt.Errorf("registry: the schema of %.80q: %w", eventType, err)
		}
		if schemas[eventType], err = json.Marshal(schema); err != nil {
			return contracts.Document{}, fmt.Errorf("registry: the schema of %.80q: %w", eventType, err)
		}
	}
	document, err := contracts.Of(f.Registry, schemas)
	if err != nil {
		return contracts.Document{}, fmt.Errorf("registry: %w", err)
	}
	return document, nil
}

// bundling puts a schema and what it refers to into one.
type bundling struct {
	schemas *folder
	root    string            // the address of the schema
	names   map[string]string // under $defs, by address
	pending []string          // addresses that are still to be brought
	defs    map[string]any
	anchors map[string]string // the files of the anchors that were met
}

func (f *folder) bundle(address string) (any, error) {
	b := &bundling{
		schemas: f, root: address, names: map[string]string{}, defs: map[string]any{}, anchors: map[string]string{},
	}
	root, err := b.document(address, "")
	if err != nil {
		return nil, err
	}
	for len(b.pending) > 0 {
		next := b.pending[0]
		b.pending = b.pending[1:]
		if b.defs[b.names[next]], err = b.document(next, "/$defs/"+b.names[next]); err != nil {
			return nil, err
		}
	}
	if len(b.defs) == 0 {
		return root, nil
	}
	object, is := root.(map[string]any)
	if !is {
		return nil, errors.New("it is no object")
	}
	all := map[string]any{}
	if own, is := object["$defs"].(map[string]any); is {
		maps.Copy(all, own)
	}
	for name, schema := range b.defs {
		if _, taken := all[name]; taken {
			return nil, fmt.Errorf("$defs has a name that a file would get as well: %.80q", name)
		}
		all[name] = schema
	}
	object["$defs"] = all
	return object, nil
}

// document is a schema whose references lead where they will be in the bundle: behind this pointer.
func (b *bundling) document(address, prefix string) (any, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	several := prefix != ""
	schema, err := contracts.MapRefs(b.schemas.documents[address], func(ref string) (string, error) {
		to, err := base.Parse(ref)
		if err != nil {
			return "", fmt.Errorf("the reference %.200q is no address", ref)
		}
		anchor, fragment := to.Fragment, to.EscapedFragment()
		to.Fragment, to.RawFragment = "", ""
		if to.Scheme != scheme { // a schema of a draft, which every reader has
			return ref, nil
		}
		target, needed := b.schemas.documents[to.String()]
		if !needed { // nothing leads there, or the file would have been read
			return ref, nil
		}
		within := prefix
		if to.String() != address {
			several = true
			within = b.under(to.String())
		}
		if within != "" && anchor != "" && !strings.HasPrefix(anchor, "/") {
			fragment = (&url.URL{Fragment: contracts.NamesOf(target).Anchors[anchor]}).EscapedFragment()
		}
		return "#" + within + fragment, nil
	})
	if err != nil {
		return nil, err
	}
	if err := b.fits(address, several); err != nil {
		return nil, err
	}
	if object, is := schema.(map[string]any); is && prefix != "" {
		delete(object, "$schema") // it is that of the whole
	}
	return schema, nil
}

// fits tells whether a file means in the bundle what it means alone. several tells that the bundle has other files.
func (b *bundling) fits(address string, several bool) error {
	names := contracts.NamesOf(b.schemas.documents[address])
	file := strings.TrimPrefix(address, scheme+":///")
	several = several || names.IDs && len(names.Outside) > 0
	switch draft := contracts.NamesOf(b.schemas.documents[b.root]).Draft; {
	case several && names.IDs:
		return fmt.Errorf("%.200s has an $id, and the schema is in more than one file: put it into one", file)
	case several && names.Dynamic:
		return fmt.Errorf("%.200s has a $dynamicRef or $recursiveRef, and the schema is in more than one file: put it "+
			"into one", file)
	case draft != names.Draft:
		return fmt.Errorf("%.200s is written in draft %.100q and what refers to it in %.100q, and one document has one: "+
			"give both the same $schema", file, names.Draft, draft)
	}
	for anchor := range names.Anchors {
		if other, taken := b.anchors[anchor]; taken {
			return fmt.Errorf("the anchor %.80q is in %.200s and in %.200s: give it another name in one of them", anchor, file,
				other)
		}
		b.anchors[anchor] = file
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// under is where a file will be in the bundle, which is brought when it is first met.
func (b *bundling) under(address string) string {
	if address == b.root {
		return ""
	}
	name, met := b.names[address]
	if !met {
		parsed, _ := url.Parse(address) // it was parsed before
		file := strings.TrimPrefix(parsed.Path, "/")
		name = notInNames.ReplaceAllString(strings.TrimSuffix(file, path.Ext(file)), "_")
		for taken := slices.Collect(maps.Values(b.names)); slices.Contains(taken, name); {
			name += "_"
		}
		b.names[address] = name
		b.pending = append(b.pending, address)
	}
	return "/$defs/" + name
}
