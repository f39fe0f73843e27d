package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stepPattern is a place of the walk: a file and a function in it.
var stepPattern = regexp.MustCompile("`([a-z0-9_/]+\\.go)`\\s+`(\\w+)`")

// The path of one event, as ARCHITECTURE.md tells it, leads through functions that are there.
func TestThePathOfAnEventIsThere(t *testing.T) {
	t.Parallel()
	_, walk, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## The path of one event\n")
	walk, _, _ = strings.Cut(walk, "\n## ")
	places := stepPattern.FindAllStringSubmatch(walk, -1)
	for _, place := range places {
		if !declares(t, place[1], place[2]) {
			t.Errorf("ARCHITECTURE.md: %s has no function %s", place[1], place[2])
		}
	}
	if len(places) < 15 {
		t.Errorf("found %d places: this test does not see them", len(places))
	}
	if declares(t, "outbox/emit.go", "Emitted") {
		t.Error("a function that is not there is found: this test does not test")
	}
}

// declares tells whether a file has a function or a method of this name.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, declaration := range parsed.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Name.Name == name {
			return true
		}
	}
	return false
}
