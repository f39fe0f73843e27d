package planted

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEveryBugIsDescribedOnce(t *testing.T) {
	t.Parallel()
	name, fault := regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`), regexp.MustCompile(`^([ACPVDISL][0-9]+|S-[0-9]+)$`)
	described := map[Bug]int{}
	for _, d := range List() {
		described[d.Bug]++
		if !name.MatchString(string(d.Bug)) || len(d.Mistake) < 20 || !fault.MatchString(d.Of) {
			t.Errorf("%+v", d)
		}
	}
	for _, bug := range constants(t) {
		if described[bug] != 1 {
			t.Errorf("%s is described %d times", bug, described[bug])
		}
		delete(described, bug)
	}
	if len(described) > 0 {
		t.Errorf("no constant: %v", described)
	}
}

// constants reads the names from the source: a constant leaves no trace in the program.
func constants(t *testing.T) []Bug {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "list.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var bugs []Bug
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				bugs = append(bugs, Bug(text))
			}
		}
		return true
	})
	if len(bugs) < 20 {
		t.Fatalf("%d constants were found", len(bugs))
	}
	return bugs
}

func TestAChangeThatChangesNothingPanics(t *testing.T) {
	t.Parallel()
	change := Change{Bug: SequenceCache, File: "a.sql", From: "CACHE 1", To: "CACHE 20"}
	if got := change.apply("seq CACHE 1"); got != "seq CACHE 20" {
		t.Errorf("got %q", got)
	}
	defer func() {
		if cause, ok := recover().(string); !ok || !strings.Contains(cause, "a.sql") {
			t.Errorf("it panicked with %v", cause)
		}
	}()
	change.apply("seq CACHE 10"[:5])
}
