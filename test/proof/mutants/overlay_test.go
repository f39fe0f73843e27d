package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository's, for tests.
func root(t *testing.T) string {
	t.Helper()
	folder, err := rootFolder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// What a mutant changes is in the product, once, and the product with all mutants compiles.
func TestEveryMutantApplies(t *testing.T) {
	t.Parallel()
	root, folder := root(t), t.TempDir()
	for _, m := range all() {
		if _, err := overlay(root, []mutant{m}, loaders()); err != nil || len(m.changes) == 0 {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if t.Failed() {
		return
	}
	changed, err := overlay(root, all(), loaders())
	if err != nil {
		t.Fatal(err)
	}
	list, err := writeOverlay(root, folder, changed)
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for file := range changed {
		packages = append(packages, "./"+filepath.Dir(file))
	}
	slices.Sort(packages)
	build := exec.CommandContext(t.Context(),
		"go", append([]string{"build", "-overlay", list}, slices.Compact(packages)...)...)
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// twin is a module with a function of each form.
var twin = map[string]string{
	"go.mod": "module twin\n\ngo 1.26\n",
	"main.go": `package main

import "fmt"

type counter struct{ n int }

// add adds, and says how often.
func (c *counter) add(_ string, by ...int) (times int) {
	for _, n := range by {
		c.n += n
	}
	return len(by)
}

func largest[T int | float64](a, b T) T {
	if a > b {
		return a
	}
	return b
}

func say(values ...any) {
	fmt.Println(values...)
}

func main() {
	c := &counter{}
	times := c.add("x", 1, 2, 3)
	say(c.n, times, largest(2, 1), load("one"))
}
`,
	"load.go": `package main

import _ "embed"

//go:embed sql/one.sql
var one string

func load(string) string {
	return one
}
`,
	"sql/one.sql": "SELECT 1 AS a",
}

// One build has all mutants, and a process is the one that it is told to be.
func TestOneBuildHasAllMutants(t *testing.T) {
	t.Parallel()
	root, folder := t.TempDir(), t.TempDir()
	for file, text := range twin {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed, err := overlay(root, []mutant{
		{name: "adds-one", changes: []change{{"main.go", "c.n += n", "c.n += n - n + 1"}}},
		{
			name: "counts-none", changes: []change{
				{"main.go", "return len(by)", "return 0"}, {"main.go", "\tfmt.Println(values...)", "\tfmt.Print(values...)"},
			},
		},
		{name: "smallest-first", changes: []change{{"main.go", "a > b", "a < b"}}},
		{name: "other-column", changes: []change{{"sql/one.sql", "AS a", "AS b"}}},
	}, []change{{"load.go", "return one", `return mutantText("one", one)`}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := writeOverlay(root, folder, changed)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "-o", program, ".")
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, want := range map[string]string{
		"": "6 3 2 SELECT 1 AS a\n", "adds-one": "3 3 2 SELECT 1 AS a\n", "counts-none": "6 0 2SELECT 1 AS a",
		"smallest-first": "6 3 1 SELECT 1 AS a\n", "other-column": "6 3 2 SELECT 1 AS b\n",
	} {
		run := exec.CommandContext(t.Context(), program)
		run.Env = append(os.Environ(), variable+"="+name)
		if text, err := run.CombinedOutput(); err != nil || string(text) != want {
			t.Errorf("%q says %q, want %q: %v", name, text, want, err)
		}
	}
}

// A mutant that is not what it was when it was written down is refused.
func TestAMutantThatDoesNotApply(t *testing.T) {
	t.Parallel()
	root := root(t)
	for want, c := range map[string]change{
		`says "no such text" 0 times`: {"outbox/intx.go", "no such text", "x"},
		"times, and must once":        {"outbox/intx.go", "return", "x"},
		`says "VALUES" 1 times`:       {"outbox/sql/one.sql", "VALUES", "VALUES"},
		"in the body of no function":  {"outbox/intx.go", "type failuresKey struct{}", "type failuresKey int"},
		"no such file":                {"outbox/gone.go", "a", "b"},
		"expected":                    {"outbox/intx.go", "committed := false", "committed := ("},
		"nothing is known to load":    {"services/compose.yaml", "name: posthaste-services", "name: x"},
	} {
		_, err := overlay(root, []mutant{{name: "a-mutant", changes: []change{c}}}, loaders())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
