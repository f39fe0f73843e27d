package registryfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
)

// scheme is the scheme of schemas' addresses here. No client speaks it.
const scheme = "registry"

// A folder is the registry's folder: the only place where schemas come from. It is what the compiler of
// schemas asks for references. After a registry is read it has all it needs, and is only read.
type folder struct {
	root       *os.Root
	texts      map[string][]byte // of the files that were read
	documents  map[string]any    // by address
	properties map[string]bool   // every name under "properties" in a schema: what may be said of a payload
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close() // only read from
		f.root = nil
	}
}

// names are the files that were read, sorted.
func (f *folder) names() []string { return slices.Sorted(maps.Keys(f.texts)) }

// file is the address of a schema in a file.
func (f *folder) file(name string) (string, error) {
	address := (&url.URL{Scheme: scheme, Path: "/" + name}).String()
	_, err := f.Load(address)
	return address, err
}

// inline is the address of a schema in the registry's own file.
func (f *folder) inline(index int, node *yaml.Node) (string, error) {
	document, err := documentOf(node)
	if err != nil {
		return "", err
	}
	address := fmt.Sprintf("%s:///.contract-%d", scheme, index)
	f.keep(address, document)
	return address, nil
}

// Load answers the compiler of schemas. It reads files of the folder and refuses everything else.
func (f *folder) Load(address string) (any, error) {
	if document, known := f.documents[address]; known {
		return document, nil
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != scheme || parsed.Host != "" || parsed.RawQuery != "" {
		return nil, errors.New("it is not a file in the registry's folder, and nothing is fetched")
	}
	name := path.Clean(strings.TrimPrefix(parsed.Path, "/"))
	if f.root == nil {
		return nil, errors.New("the registry's folder cannot be opened")
	}
	if len(f.texts) >= maxSchemas {
		return nil, fmt.Errorf("more than %d files of schemas", maxSchemas)
	}
	text, err := input.ReadIn(f.root, name, maxFileBytes)
	if err != nil {
		return nil, err
	}
	document, err := parseSchema(name, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.texts[name] = text
	f.keep(address, document)
	return document, nil
}

// keep remembers a document, and the names that its author gave to properties.
func (f *folder) keep(address string, document any) {
	f.documents[address] = document
	f.collect(document)
}

func (f *folder) collect(document any) {
	switch document := document.(type) {
	case map[string]any:
		if properties, ok := document["properties"].(map[string]any); ok {
			for name := range properties {
				f.properties[name] = true
			}
		}
		for _, child := range document {
			f.collect(child)
		}
	case []any:
		for _, child := range document {
			f.collect(child)
		}
	}
}

// parseSchema reads a schema's file: JSON, or YAML by its name.
func parseSchema(name string, text []byte) (any, error) {
	if extension := path.Ext(name); extension == ".yaml" || extension == ".yml" {
		node, wrong := input.ParseYAML(text)
		if len(wrong) > 0 {
			return nil, fmt.Errorf("line %d: %s", wrong[0].Line, wrong[0].Text)
		}
		if node == nil {
			return nil, errors.New("empty")
		}
		return documentOf(node)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if depth(document) > input.MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", input.MaxDepth)
	}
	return document, nil
}

func depth(document any) int {
	deepest := 0
	switch document := document.(type) {
	case map[string]any:
		for _, child := range document {
			deepest = max(deepest, depth(child))
		}
	case []any:
		for _, child := range document {
			deepest = max(deepest, depth(child))
		}
	default:
		return 0
	}
	return deepest + 1
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// documentOf is a YAML node as JSON has it.
func documentOf(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.MappingNode:
		document := make(map[string]any, len(node.Content)/2)
		for key, value := range pairs(node) {
			child, err := documentOf(value)
			if err != nil {
				return nil, err
			}
			document[key.Value] = child
		}
		return document, nil
	case yaml.SequenceNode:
		document := make([]any, 0, len(node.Content))
		for _, value := range node.Content {
			child, err := documentOf(value)
			if err != nil {
				return nil, err
			}
			document = append(document, child)
		}
		return document, nil
	default:
		return scalarOf(node)
	}
}

func scalarOf(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return node.Value == "true" || node.Value == "True" || node.Value == "TRUE", nil
	case "!!int", "!!float":
		if !jsonNumber.MatchString(node.Value) {
			return nil, fmt.Errorf("line %d: a number must be written as JSON has it", node.Line)
		}
		return json.Number(node.Value), nil
	default:
		if node.Style == 0 && jsonNumber.MatchString(node.Value) { // one that is too large for YAML's own
			return json.Number(node.Value), nil
		}
		return node.Value, nil
	}
}
