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
// comes along, under its $defs. [Load] reads the document's JSON as it reads the file. It fails where a schema with an
// $id of its own refers to another file: nobody could tell what its references mean there.
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
}

func (f *folder) bundle(address string) (any, error) {
	b := &bundling{schemas: f, root: address, names: map[string]string{}, defs: map[string]any{}}
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
	others := false
	schema, err := contracts.MapRefs(b.schemas.documents[address], func(ref string) (string, error) {
		to, err := base.Parse(ref)
		if err != nil {
			return "", fmt.Errorf("the reference %.200q is no address", ref)
		}
		fragment := to.EscapedFragment()
		to.Fragment, to.RawFragment = "", ""
		if to.Scheme != scheme { // a schema of a draft, which every reader has
			return ref, nil
		}
		if _, needed := b.schemas.documents[to.String()]; !needed { // nothing leads there, or the file would have been read
			return ref, nil
		}
		target := prefix
		if to.String() != address {
			others = true
			target = b.under(to.String())
		}
		if fragment != "" && !strings.HasPrefix(fragment, "/") { // an anchor has one name for all of the bundle
			return "#" + fragment, nil
		}
		return "#" + target + fragment, nil
	})
	if err != nil {
		return nil, err
	}
	object, is := schema.(map[string]any)
	if is && (others || prefix != "") && object["$id"] != nil {
		return nil, errors.New("it has an $id, and is in more than one file: put it into one")
	}
	if is && prefix != "" {
		delete(object, "$schema") // it is that of the whole
	}
	return schema, nil
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
