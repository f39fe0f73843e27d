package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
	"github.com/posthaste-dev/posthaste/internal/suggest"
)

// readFile takes what the file has, and tells whether that is all it wanted to say.
func (s Set) readFile(problems *problems, name string) (values source, understood bool) {
	r := fileReader{file: name, problems: problems, known: s.targets(), values: source{}}
	text, err := input.ReadFile(name, maxFileBytes)
	if err != nil {
		problems.addf("file", "", "%v", err)
		return r.values, false
	}
	root, wrong := input.ParseYAML(text)
	for _, problem := range wrong {
		problems.addf(r.at(problem.Line), "", "%s", problem.Text)
	}
	switch {
	case len(wrong) > 0:
		return r.values, false
	case root == nil:
		return r.values, true
	case root.Kind != yaml.MappingNode:
		problems.addf(r.at(root.Line), "", "must be keys with values")
		return r.values, false
	}
	r.group("", root)
	return r.values, true
}

type fileReader struct {
	file     string
	problems *problems
	known    map[string]target
	values   source
}

// at names a line of the file.
func (r *fileReader) at(line int) string {
	if line == 0 {
		return "file " + r.file
	}
	return fmt.Sprintf("file %s:%d", r.file, line)
}

// group takes the keys of a mapping. A name is what stands on the way to the value, with dots between.
func (r *fileReader) group(prefix string, mapping *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		target, known := r.known[name]
		switch {
		case known:
			r.value(target, key.Line, value)
		case value.Kind == yaml.MappingNode && r.isGroup(name):
			r.group(name+".", value)
		case r.isGroup(name):
			r.problems.addf(r.at(key.Line), name, "is a group of keys and has no value itself")
		default:
			suggestion := ""
			if !r.problems.full() {
				suggestion = suggest.DidYouMean(name, r.names())
			}
			r.problems.addf(r.at(key.Line), "", "%.80q is not known%s", name, suggestion)
		}
	}
}

func (r *fileReader) isGroup(name string) bool {
	return slices.ContainsFunc(r.names(), func(known string) bool { return strings.HasPrefix(known, name+".") })
}

func (r *fileReader) names() []string {
	names := make([]string, 0, len(r.known))
	for name := range r.known {
		names = append(names, name)
	}
	return names
}

func (r *fileReader) value(target target, line int, node *yaml.Node) {
	value := given{source: r.at(line)}
	switch {
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null":
		r.problems.addf(value.source, target.name, "has no value: leave the line out for the default")
		return
	case node.Kind == yaml.ScalarNode && target.file:
		r.values.putFile(r.problems, target.definition, node.Value, value.source)
		return
	case node.Kind == yaml.ScalarNode:
		value.text = node.Value
	case node.Kind == yaml.SequenceNode && target.kind == listKind:
		value.list = r.items(target, node.Content)
	case node.Kind == yaml.MappingNode && target.kind == mapKind:
		value.pairs = map[string]string{}
		items := r.items(target, node.Content)
		for i := 0; i+1 < len(items); i += 2 {
			value.pairs[items[i]] = items[i+1]
		}
	default:
		r.problems.addf(value.source, target.name, "must be of kind %s", target.kind)
		return
	}
	r.values.put(r.problems, target.definition, value)
}

// items are the texts of a list, or of a map's names and values.
func (r *fileReader) items(target target, nodes []*yaml.Node) []string {
	items := make([]string, 0, len(nodes))
	for _, node := range nodes {
		if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
			r.problems.addf(r.at(node.Line), target.name, "each item must be a word")
			continue
		}
		items = append(items, node.Value)
	}
	return items
}
