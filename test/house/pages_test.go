package house

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/conformance"
)

// pages lists the Markdown files of the root and of docs, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i], err = filepath.Rel(root, list[i]); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

var linkPattern = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`) // not those with a scheme

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := 0
	for _, page := range pages(t) {
		for _, match := range linkPattern.FindAllStringSubmatch(read(t, page), -1) {
			links++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			}
		}
	}
	if links < 20 {
		t.Errorf("found %d links: this test does not see them", links)
	}
}

// flat is a text without what indentation and line breaks add.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// What docs/relay.md shows first, a relay and handlers in its process, is compiled as examples.
func TestTheRelayPageShowsWhatCompiles(t *testing.T) {
	t.Parallel()
	rest, examples := read(t, "docs/relay.md"), flat(read(t, "relay/example_test.go"))
	for range 2 {
		var code string
		var found bool
		_, rest, _ = strings.Cut(rest, "```go\n")
		if code, rest, found = strings.Cut(rest, "```"); !found || len(code) < 100 {
			t.Fatal("docs/relay.md shows no code")
		}
		if !strings.Contains(examples, flat(code)) {
			t.Errorf("this code of docs/relay.md is not in relay/example_test.go:\n%s", code)
		}
	}
}

// settingPattern is a field of relay.Settings, whose comment ends with the default.
var settingPattern = regexp.MustCompile(`(?m)^\t([A-Z]\w+) +(?:int|time\.Duration) +// (?:.*; )?(.+)$`)

func TestTheRelayPageHasTheDefaults(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "relay/relay.go"), "\ntype Settings struct {\n")
	fields, _, _ := strings.Cut(rest, "\n}\n")
	page := read(t, "docs/relay.md")
	found := settingPattern.FindAllStringSubmatch(fields, -1)
	for _, field := range found {
		if !strings.Contains(page, "| `"+field[1]+"` | "+field[2]+" |") {
			t.Errorf("docs/relay.md does not say that %s is %s", field[1], field[2])
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
	for _, row := range conformance.Rows(read(t, "docs/conformance.md")) {
		for _, test := range row.Tests {
			if folder, name, _ := strings.Cut(test, "."); !there.tests(folder, name) {
				t.Errorf("docs/conformance.md, %s: %s has no %s", row.ID, folder, name)
			}
		}
	}
}

var modulePattern = regexp.MustCompile(`[a-z0-9.-]+\.[a-z]+(?:/[A-Za-z0-9._-]+)+`)

func TestEveryDependencyHasItsLine(t *testing.T) {
	t.Parallel()
	named := modulePattern.FindAllString(read(t, "docs/dependencies.md"), -1)
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
				t.Errorf("%s requires %s, which has no line in docs/dependencies.md", module, require.Path)
			}
		}
	}
}
