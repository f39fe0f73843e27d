package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxDepth is how deep a document may be nested.
const MaxDepth = 64

// A Problem is what is wrong in a line of a file.
type Problem struct {
	Line int // 0: of the whole file
	Text string
}

// ParseYAML reads one document and lists everything in it that people do not mean or do not see: a key
// that is there twice, anchors and aliases (a file of a few lines can stand for gigabytes), tags, a second
// document. The node is nil where the document is empty or cannot be read.
func ParseYAML(text []byte) (*yaml.Node, []Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	document, err := decode(decoder)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	if len(document.Content) != 1 {
		return nil, []Problem{{Text: "not a YAML document"}}
	}
	root := document.Content[0]
	var w walk
	w.node(root, 0)
	if second, err := decode(decoder); err == nil {
		w.invalidf(second.Line, "a second document begins here: a file holds one")
	} else if !errors.Is(err, io.EOF) {
		w.problems = append(w.problems, syntaxProblem(err))
	}
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		root = nil
	}
	return root, w.problems
}

// decode survives a parser that panics.
func decode(decoder *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cannot be read as YAML")
		}
	}()
	node = new(yaml.Node)
	if err := decoder.Decode(node); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return node, nil
}

var lineOfError = regexp.MustCompile(`^line (\d+): `)

// syntaxProblem takes the line out of the parser's sentence. The parser quotes nothing but the names of
// anchors, which may be a value that somebody forgot to put in quotes.
func syntaxProblem(err error) Problem {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "decode: "), "yaml: ")
	line := 0
	if found := lineOfError.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1]) // digits, by the pattern
		text = strings.TrimPrefix(text, found[0])
	}
	if strings.Contains(text, "anchor") {
		text = noAliases
	}
	return Problem{Line: line, Text: text}
}

const noAliases = "anchors and aliases are not taken; a value that begins with * or & needs quotes"

type walk struct {
	problems []Problem
}

func (w *walk) invalidf(line int, format string, args ...any) {
	w.problems = append(w.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

func (w *walk) node(node *yaml.Node, depth int) {
	switch {
	case depth > MaxDepth:
		w.invalidf(node.Line, "nested deeper than %d levels", MaxDepth)
		return
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		w.invalidf(node.Line, noAliases)
		return
	case node.Style&yaml.TaggedStyle != 0:
		w.invalidf(node.Line, "tags are not taken; a value that begins with ! needs quotes")
		return
	}
	if node.Kind == yaml.MappingNode {
		w.keys(node)
	}
	for _, child := range node.Content {
		w.node(child, depth+1)
	}
}

func (w *walk) keys(mapping *yaml.Node) {
	first := map[string]int{}
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		switch line, twice := first[key.Value]; {
		case key.Kind == yaml.AliasNode: // the walk says it
		case key.Kind != yaml.ScalarNode:
			w.invalidf(key.Line, "a key must be a word")
		case key.ShortTag() == "!!merge":
			w.invalidf(key.Line, "merge keys (<<) are not taken")
		case twice:
			w.invalidf(key.Line, "the key %.80q is there twice, first in line %d", key.Value, line)
		default:
			first[key.Value] = key.Line
		}
	}
}
