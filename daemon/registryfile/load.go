package registryfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
	"github.com/posthaste-dev/posthaste/internal/suggest"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// What a registry may be at most.
const (
	maxFileBytes = 1 << 20
	maxContracts = 1000
	maxSchemas   = 1000 // files
	maxProblems  = 100
)

// Options are what the file leaves open.
type Options struct {
	// DefaultTopic is the topic of contracts that name none. Defaults to none: they are refused.
	DefaultTopic string
}

// A File is a registry and what it was read from.
type File struct {
	// Registry has the contracts.
	Registry *outbox.Registry
	// SHA256 is the hash of all that was read, in the order of Files: `cat FILES | sha256sum`.
	SHA256 string
	// Files are the registry's file and the schemas that it refers to, by name.
	Files []string

	schemas   *folder
	addresses map[string]string // of the types' schemas
}

// An Error lists everything that is wrong with a registry's file.
type Error struct {
	Problems []string
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	return "the registry is refused:\n  " + strings.Join(e.Problems, "\n  ")
}

// Load reads a registry, once. What is wrong is told all at once, as an [Error].
func Load(name string, options Options) (*File, error) {
	schemas := newFolder(filepath.Dir(name))
	defer schemas.close()
	text, err := input.ReadFile(name, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return read(name, text, schemas, options)
}

// ReadBack tells whether a document is read by [Load] as what it says. It is read as YAML, where some numbers are texts
// and names have a limit.
func ReadBack(document contracts.Document) error {
	text, err := document.JSON()
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if len(text) > maxFileBytes {
		return fmt.Errorf("registry: as one document it has %d bytes, and a registry's file %d at most", len(text),
			maxFileBytes)
	}
	file, err := read("export", text, &folder{documents: map[string]any{}, properties: map[string]bool{}}, Options{})
	if err != nil {
		return fmt.Errorf("registry: as one document it could not be read: %w", err)
	}
	again, err := file.Contracts()
	if err != nil {
		return err
	}
	for i, was := range document.Contracts {
		if is := again.Contracts[i]; !reflect.DeepEqual(was, is) {
			return fmt.Errorf("registry: as one document the contract of %.80q would be read as another one: write the numbers "+
				"and characters of its schema in a plainer way", was.Type)
		}
	}
	return nil
}

// read takes the registry from its text. What it refers to is in the folder.
func read(name string, text []byte, schemas *folder, options Options) (*File, error) {
	r := &reader{name: name, options: options, schemas: schemas, addresses: map[string]string{}}
	root, wrong := input.ParseYAML(input.YAMLOfJSON(text))
	for _, problem := range wrong {
		r.invalidf(problem.Line, "%s", problem.Text)
	}
	if len(wrong) == 0 {
		r.root(root)
	}
	if len(r.problems) > 0 {
		return nil, &Error{Problems: r.problems}
	}
	registry, err := outbox.NewRegistry(r.contracts...)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	file := &File{Registry: registry, Files: []string{name}, schemas: r.schemas, addresses: r.addresses}
	content := bytes.NewBuffer(bytes.Clone(text))
	for _, schema := range r.schemas.names() {
		file.Files = append(file.Files, filepath.Join(filepath.Dir(name), filepath.FromSlash(schema)))
		content.Write(r.schemas.texts[schema])
	}
	sum := sha256.Sum256(content.Bytes())
	file.SHA256 = hex.EncodeToString(sum[:])
	return file, nil
}

// reader goes through the file and collects contracts and problems.
type reader struct {
	name      string
	options   Options
	schemas   *folder
	contracts []outbox.AnyContract
	lines     map[string]int    // of the types
	addresses map[string]string // of their schemas
	problems  []string
}

func (r *reader) invalidf(line int, format string, args ...any) {
	if len(r.problems) == maxProblems {
		r.problems = append(r.problems, "and more")
	}
	if len(r.problems) > maxProblems {
		return
	}
	where := r.name
	if line > 0 {
		where = fmt.Sprintf("%s:%d", r.name, line)
	}
	r.problems = append(r.problems, where+": "+fmt.Sprintf(format, args...))
}

func (r *reader) root(root *yaml.Node) {
	if root == nil || root.Kind != yaml.MappingNode {
		r.invalidf(0, "must have a list of contracts")
		return
	}
	found := false
	for key, value := range pairs(root) {
		switch {
		case key.Value != "contracts":
			r.invalidf(key.Line, "%.80q is not known%s", key.Value, suggest.DidYouMean(key.Value, []string{"contracts"}))
		case value.Kind != yaml.SequenceNode:
			r.invalidf(key.Line, "contracts must be a list")
			found = true
		default:
			r.list(value)
			found = true
		}
	}
	if !found {
		r.invalidf(0, "must have a list of contracts")
	}
}

func (r *reader) list(list *yaml.Node) {
	r.lines = map[string]int{}
	if len(list.Content) == 0 {
		r.invalidf(list.Line, "there is no contract")
	}
	if len(list.Content) > maxContracts {
		r.invalidf(list.Line, "%d contracts, the limit is %d", len(list.Content), maxContracts)
		return
	}
	for i, node := range list.Content {
		if node.Kind != yaml.MappingNode {
			r.invalidf(node.Line, "a contract must have keys: %s", strings.Join(fields, ", "))
			continue
		}
		r.contract(i, node)
	}
}

// pairs goes over a mapping.
func pairs(mapping *yaml.Node) func(func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// newFolder opens the folder of the registry; one that cannot be opened has no files.
func newFolder(name string) *folder {
	f := &folder{texts: map[string][]byte{}, documents: map[string]any{}, properties: map[string]bool{}}
	if root, err := os.OpenRoot(name); err == nil {
		f.root = root
	}
	return f
}
