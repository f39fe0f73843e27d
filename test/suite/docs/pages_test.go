package docs

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/conformance"
)

// flat is a text without what indentation and line breaks add.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// What docs/guide/relay.md shows first, a relay and handlers in its process, is compiled as examples.
func TestTheRelayPageShowsWhatCompiles(t *testing.T) {
	t.Parallel()
	rest, examples := read(t, "docs/guide/relay.md"), flat(read(t, "relay/example_test.go"))
	for range 2 {
		var code string
		var found bool
		_, rest, _ = strings.Cut(rest, "```go\n")
		if code, rest, found = strings.Cut(rest, "```"); !found || len(code) < 100 {
			t.Fatal("docs/guide/relay.md shows no code")
		}
		if !strings.Contains(examples, flat(code)) {
			t.Errorf("this code of docs/guide/relay.md is not in relay/example_test.go:\n%s", code)
		}
	}
}

// settingPattern is a field of relay.Settings, whose comment ends with the default.
var settingPattern = regexp.MustCompile(`(?m)^\t([A-Z]\w+) +(?:int|time\.Duration) +// (?:.*; )?(.+)$`)

func TestTheRelayPageHasTheDefaults(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "relay/relay.go"), "\ntype Settings struct {\n")
	fields, _, _ := strings.Cut(rest, "\n}\n")
	page := read(t, "docs/guide/relay.md")
	found := settingPattern.FindAllStringSubmatch(fields, -1)
	for _, field := range found {
		if !strings.Contains(page, "| `"+field[1]+"` | "+field[2]+" |") {
			t.Errorf("docs/guide/relay.md does not say that %s is %s", field[1], field[2])
		}
	}
	if len(found) < 10 {
		t.Errorf("found %d settings: this test does not see them", len(found))
	}
}

// Whether they passed is asked after a run of all tests; that they exist can be asked at once.
func TestConformanceNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	there := theTree(t)
	for _, row := range conformance.Rows(read(t, "docs/internals/conformance.md")) {
		for _, test := range row.Tests {
			if folder, name, _ := strings.Cut(test, "."); !there.tests(folder, name) {
				t.Errorf("docs/internals/conformance.md, %s: %s has no %s", row.ID, folder, name)
			}
		}
	}
}

var modulePattern = regexp.MustCompile(`[a-z0-9.-]+\.[a-z]+(?:/[A-Za-z0-9._-]+)+`)

func TestEveryDependencyHasItsLine(t *testing.T) {
	t.Parallel()
	named := modulePattern.FindAllString(read(t, "docs/internals/dependencies.md"), -1)
	for _, module := range modules(t) {
		var mod struct {
			Require []struct {
				Path     string
				Indirect bool
			}
		}
		if err := json.Unmarshal(goCommand(t, filepath.Join(root, module), "mod", "edit", "-json"), &mod); err != nil {
			t.Fatal(err)
		}
		for _, require := range mod.Require {
			if require.Indirect || strings.HasPrefix(require.Path, ours) {
				continue
			}
			if !slices.Contains(named, require.Path) {
				t.Errorf("%s requires %s, which has no line in docs/internals/dependencies.md", module, require.Path)
			}
		}
	}
}
